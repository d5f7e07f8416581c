// The modules that the worker hands to environments, so that they need no node_modules: the schema library and the environment API.
import * as zod from 'zod';
import * as boardText from '../../envs/api/board-text';
import * as environmentApi from '../../envs/api/environment';
import * as numpyLegacy from '../../envs/api/random/numpy-legacy';
import * as pcg64 from '../../envs/api/random/pcg64';
import * as pythonRandom from '../../envs/api/random/python-random';
import type { ProvidedName } from './provided-names';

export const providedModules: Readonly<Record<ProvidedName, unknown>> = {
  zod,
  'zod/v4': zod,
  'ragen-workbench/api': environmentApi,
  'ragen-workbench/api/board-text': boardText,
  'ragen-workbench/api/random/numpy-legacy': numpyLegacy,
  'ragen-workbench/api/random/pcg64': pcg64,
  'ragen-workbench/api/random/python-random': pythonRandom,
};
