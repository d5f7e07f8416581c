// Names of the modules that every environment can import, even if its folder has no node_modules. `provided-modules.ts`
// contains the modules themselves.

const providedNames = [
  'zod',
  'zod/v4',
  'pngjs', // imported by envs/api/picture, and therefore by copies of built-in environments
  'ragen-workbench/api',
  'ragen-workbench/api/board-text',
  'ragen-workbench/api/drawing',
  'ragen-workbench/api/picture',
  'ragen-workbench/api/plugins/alarm',
  'ragen-workbench/api/plugins/chart',
  'ragen-workbench/api/plugins/estimator',
  'ragen-workbench/api/plugins/filter',
  'ragen-workbench/api/plugins/loss',
  'ragen-workbench/api/plugins/mask',
  'ragen-workbench/api/plugins/memory',
  'ragen-workbench/api/plugins/metric',
  'ragen-workbench/api/plugins/played-episode',
  'ragen-workbench/api/plugins/report',
  'ragen-workbench/api/random/numpy-legacy',
  'ragen-workbench/api/random/pcg64',
  'ragen-workbench/api/random/python-random',
  'ragen-workbench/api/rewards',
  'ragen-workbench/api/rewards/described-state',
  'ragen-workbench/api/rewards/grounding',
  'ragen-workbench/api/rewards/repetition',
  'ragen-workbench/api/rewards/thought-length',
  'ragen-workbench/api/state-forms',
  'ragen-workbench/api/state-text',
  'ragen-workbench/api/roles',
  'ragen-workbench/api/tools/call-action',
  'ragen-workbench/api/tools/code-tool',
  'ragen-workbench/api/tools/tool',
  'ragen-workbench/api/wrappers/action-mask',
  'ragen-workbench/api/wrappers/frame-history',
  'ragen-workbench/api/wrappers/observation',
  'ragen-workbench/api/wrappers/record',
  'ragen-workbench/api/wrappers/reward-shaping',
  'ragen-workbench/api/wrappers/time-limit',
  'ragen-workbench/api/wrappers/wrap',
] as const;

export type ProvidedName = (typeof providedNames)[number];

export function isProvided(name: string): name is ProvidedName {
  return (providedNames as readonly string[]).includes(name);
}
