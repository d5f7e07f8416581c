// Which YAML files are configurations of runs. Told by what they hold: keys that nobody else has, or several of RAGEN's; a file in a folder for
// configurations is one with a single key of ours, or while it is still empty; so is `*.ragen.yaml`. Other YAML is never touched. Pure.

/** Keys that RAGEN or this extension alone have. */
const ownKeys = [
  'es_manager',
  'agent_proxy',
  'actor_rollout_ref',
  'custom_envs',
  'collapse_detection',
  'rollout_manager',
];
/** Keys that other tools' files may have too. */
const sharedKeys = [
  ...['defaults', 'trainer', 'algorithm', 'critic', 'seed', 'lora', 'data', 'reward_model', 'model_path', 'workbench'],
  ...['output', 'model_config', 'model_info', 'enable_response_mask', 'grpo_advantage_length_weight'],
  ...['micro_batch_size_per_gpu', 'log_prob_micro_batch_size_per_gpu', 'ppo_mini_batch_size'],
];
/** Keys of the other files that this extension reads: sweeps, fine-tuning. */
const otherFiles = ['grid', 'list', 'demonstrations'];

/** The keys of a YAML text's outermost map, told by its lines. */
export const topKeys = (text: string): string[] =>
  [...text.matchAll(/^([A-Za-z_][\w.-]*)[ \t]*:/gm)].map(([, key]) => key);

/** Whether a file is a configuration of a run. `path` has forward slashes. */
export function isRunConfiguration(path: string, text: string): boolean {
  if (!/\.ya?ml$/i.test(path)) return false;
  const keys = topKeys(text);
  if (keys.some(key => otherFiles.includes(key))) return false;
  if (keys.some(key => ownKeys.includes(key))) return true;
  if (/\.ragen\.ya?ml$/i.test(path)) return true;
  const shared = keys.filter(key => sharedKeys.includes(key)).length;
  const inPlace = /(^|\/)(configs?|\.ragen)\/([^/]+\/)?[^/]+$/.test(path);
  if (inPlace && keys.length === 0)
    return (
      text
        .replace(/^\s*(#.*)?$/gm, '')
        .trim()
        .split('\n').length <= 1
    );
  return (
    shared >= (inPlace ? 1 : 2) &&
    shared * 2 >= keys.length &&
    (keys[0] !== 'defaults' || shared > 1 || buildsOnOurs(text))
  );
}

/** Whether a run can start from a configuration; others are parts of one. */
export const isWhole = (text: string): boolean => {
  const keys = topKeys(text);
  return keys.includes('defaults') || ['trainer', 'es_manager', 'actor_rollout_ref'].every(key => keys.includes(key));
};

const buildsOnOurs = (text: string): boolean =>
  /^defaults:\s*(\[|\n\s*-)\s*(base|envs|_\d+_\w+|quickstart|ppo_trainer)\b/m.test(text);
