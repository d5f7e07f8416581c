// Creates media/models/ragen-tiny-vision; started with `npm run make:tiny-vision-model`. TINY_VISION_MODEL_FOLDER names
// another folder.
import { join } from 'node:path';
import { installation } from '../../node/installation';
import { makeTinyVisionModel } from './tiny-vision-model';

const printLine = (text: string): void => void process.stderr.write(`${text}\n`);

makeTinyVisionModel({
  folder: process.env.TINY_VISION_MODEL_FOLDER ?? join(installation.models, 'ragen-tiny-vision'),
  seed: 70_000_000, // far above the seeds of training (10000…) and validation (123…)
  corpusBatches: 16,
  steps: { learn: 810, forget: 100 },
  validateEvery: 100,
  validationGroups: 64,
  printLine,
}).catch((error: Error) => {
  printLine(error.stack ?? error.message);
  process.exitCode = 1;
});
