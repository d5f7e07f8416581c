// The modules that the worker provides to environments: zod, pngjs and the environment API. Environments therefore need
// no node_modules.
import * as pngjs from 'pngjs';
import * as zod from 'zod';
import * as boardText from '../../../../envs/api/board-text';
import * as environmentApi from '../../../../envs/api/environment';
import * as drawing from '../../../../envs/api/drawing';
import * as picture from '../../../../envs/api/picture';
import * as pluginAlarm from '../../../../envs/api/plugins/alarm';
import * as pluginChart from '../../../../envs/api/plugins/chart';
import * as pluginEstimator from '../../../../envs/api/plugins/estimator';
import * as pluginFilter from '../../../../envs/api/plugins/filter';
import * as pluginLoss from '../../../../envs/api/plugins/loss';
import * as pluginMask from '../../../../envs/api/plugins/mask';
import * as pluginMemory from '../../../../envs/api/plugins/memory';
import * as pluginMetric from '../../../../envs/api/plugins/metric';
import * as pluginEpisode from '../../../../envs/api/plugins/played-episode';
import * as pluginReport from '../../../../envs/api/plugins/report';
import * as numpyLegacy from '../../../../envs/api/random/numpy-legacy';
import * as pcg64 from '../../../../envs/api/random/pcg64';
import * as pythonRandom from '../../../../envs/api/random/python-random';
import * as rewards from '../../../../envs/api/rewards';
import * as describedState from '../../../../envs/api/rewards/described-state';
import * as grounding from '../../../../envs/api/rewards/grounding';
import * as repetition from '../../../../envs/api/rewards/repetition';
import * as thoughtLength from '../../../../envs/api/rewards/thought-length';
import * as stateForms from '../../../../envs/api/state-forms';
import * as stateText from '../../../../envs/api/state-text';
import * as roles from '../../../../envs/api/roles';
import * as callAction from '../../../../envs/api/tools/call-action';
import * as codeTool from '../../../../envs/api/tools/code-tool';
import * as tool from '../../../../envs/api/tools/tool';
import * as actionMask from '../../../../envs/api/wrappers/action-mask';
import * as frameHistory from '../../../../envs/api/wrappers/frame-history';
import * as observation from '../../../../envs/api/wrappers/observation';
import * as record from '../../../../envs/api/wrappers/record';
import * as rewardShaping from '../../../../envs/api/wrappers/reward-shaping';
import * as timeLimit from '../../../../envs/api/wrappers/time-limit';
import * as wrap from '../../../../envs/api/wrappers/wrap';
import type { ProvidedName } from './provided-names';

export const providedModules: Readonly<Record<ProvidedName, unknown>> = {
  zod,
  'zod/v4': zod,
  pngjs,
  'ragen-workbench/api': environmentApi,
  'ragen-workbench/api/board-text': boardText,
  'ragen-workbench/api/drawing': drawing,
  'ragen-workbench/api/picture': picture,
  'ragen-workbench/api/plugins/alarm': pluginAlarm,
  'ragen-workbench/api/plugins/chart': pluginChart,
  'ragen-workbench/api/plugins/estimator': pluginEstimator,
  'ragen-workbench/api/plugins/filter': pluginFilter,
  'ragen-workbench/api/plugins/loss': pluginLoss,
  'ragen-workbench/api/plugins/mask': pluginMask,
  'ragen-workbench/api/plugins/memory': pluginMemory,
  'ragen-workbench/api/plugins/metric': pluginMetric,
  'ragen-workbench/api/plugins/played-episode': pluginEpisode,
  'ragen-workbench/api/plugins/report': pluginReport,
  'ragen-workbench/api/random/numpy-legacy': numpyLegacy,
  'ragen-workbench/api/random/pcg64': pcg64,
  'ragen-workbench/api/random/python-random': pythonRandom,
  'ragen-workbench/api/rewards': rewards,
  'ragen-workbench/api/rewards/described-state': describedState,
  'ragen-workbench/api/rewards/grounding': grounding,
  'ragen-workbench/api/rewards/repetition': repetition,
  'ragen-workbench/api/rewards/thought-length': thoughtLength,
  'ragen-workbench/api/state-forms': stateForms,
  'ragen-workbench/api/state-text': stateText,
  'ragen-workbench/api/roles': roles,
  'ragen-workbench/api/tools/call-action': callAction,
  'ragen-workbench/api/tools/code-tool': codeTool,
  'ragen-workbench/api/tools/tool': tool,
  'ragen-workbench/api/wrappers/action-mask': actionMask,
  'ragen-workbench/api/wrappers/frame-history': frameHistory,
  'ragen-workbench/api/wrappers/observation': observation,
  'ragen-workbench/api/wrappers/record': record,
  'ragen-workbench/api/wrappers/reward-shaping': rewardShaping,
  'ragen-workbench/api/wrappers/time-limit': timeLimit,
  'ragen-workbench/api/wrappers/wrap': wrap,
};
