// All fuzz targets.
import { configurationTargets } from './fuzz-configuration';
import { modelTargets } from './fuzz-models';
import { answerTargets } from './fuzz-answers';
import { frameTargets } from './fuzz-frames';
import { runFolderTargets } from './fuzz-run-folder';
import { httpTargets } from './fuzz-http';
import { pictureTargets } from './fuzz-pictures';
import type { FuzzTarget } from './fuzz-target';

export const targets: readonly FuzzTarget[] = [
  ...configurationTargets,
  ...modelTargets,
  ...answerTargets,
  ...frameTargets,
  ...runFolderTargets,
  ...httpTargets,
  ...pictureTargets,
];
