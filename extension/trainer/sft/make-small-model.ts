// Creates media/models/ragen-small; started with `npm run make:small-model`. SMALL_MODEL_FOLDER names another folder.
import { join } from 'node:path';
import { installation } from '../../node/installation';
import { makeSmallModel } from './small-model';

const printLine = (text: string): void => void process.stderr.write(`${text}\n`);

makeSmallModel({
  folder: process.env.SMALL_MODEL_FOLDER ?? join(installation.models, 'ragen-small'),
  seed: 60_000_000, // far above the seeds of training (10000…) and validation (123…)
  corpusBatches: 24,
  vocabSize: 2400,
  steps: { learn: 4000, forget: 120 },
  validateEvery: 1000,
  validationGroups: 32,
  printLine,
}).catch((error: Error) => {
  printLine(error.stack ?? error.message);
  process.exitCode = 1;
});
