// Makes a small model that sees; started with `npm run make:tiny-vision-model`. An argument selects a recipe
// (vision-recipes.ts), by default `lake`. TINY_VISION_MODEL_FOLDER names another folder than the recipe's.
import { join } from 'node:path';
import { installation } from '../../node/installation';
import { makeTinyVisionModel } from './tiny-vision-model';
import { visionRecipes } from './vision-recipes';

const printLine = (text: string): void => void process.stderr.write(`${text}\n`);

const [chosen = 'lake'] = process.argv.slice(2);
const known = Object.keys(visionRecipes);
if (known.includes(chosen)) {
  const recipe = visionRecipes[chosen];
  makeTinyVisionModel({
    recipe,
    folder: process.env.TINY_VISION_MODEL_FOLDER ?? join(installation.root, recipe.folder),
    seed: 70_000_000, // far above the seeds of training (10000…) and validation (123…)
    corpusBatches: 16,
    validateEvery: 100,
    validationGroups: 64,
    printLine,
  }).catch((error: Error) => {
    printLine(error.stack ?? error.message);
    process.exitCode = 1;
  });
} else {
  printLine(`make:tiny-vision-model: there is no recipe ${chosen}: use one of ${known.join(', ')}`);
  process.exitCode = 2;
}
