// Detects YAML files that are run configurations. A file is a run configuration if its name ends in `.ragen.yaml`, or
// if it contains one of `ownKeys`. A file with at least two `sharedKeys` is also a run configuration if at least half
// of its keys are `sharedKeys`. In a folder for configurations, one of the `sharedKeys` is sufficient instead of two,
// and an empty file is a run configuration too. Pure functions.

/** Keys that only RAGEN or this extension uses. */
const ownKeys = [
  'es_manager',
  'agent_proxy',
  'actor_rollout_ref',
  'custom_envs',
  'collapse_detection',
  'rollout_manager',
];
/** Keys that files of other tools may also have. */
const sharedKeys = [
  'defaults',
  'trainer',
  'algorithm',
  'critic',
  'seed',
  'lora',
  'data',
  'reward_model',
  'model_path',
  'workbench',
  'output',
  'model_config',
  'model_info',
  'enable_response_mask',
  'grpo_advantage_length_weight',
  'micro_batch_size_per_gpu',
  'log_prob_micro_batch_size_per_gpu',
  'ppo_mini_batch_size',
];
/**
 * Keys of the other YAML files that this extension reads: sweep files and files for supervised fine-tuning. A file with
 * such a key is not a run configuration.
 */
const otherFiles = ['grid', 'list', 'demonstrations'];

/** Returns the top-level keys of a YAML text, found line by line. */
const topKeys = (text: string): string[] => [...text.matchAll(/^([A-Za-z_][\w.-]*)[ \t]*:/gm)].map(([, key]) => key);

/** Whether a file is a run configuration. `path` has forward slashes. */
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

/** Whether a run can start from a configuration. Other configurations are fragments. */
export const isComplete = (text: string): boolean => {
  const keys = topKeys(text);
  return keys.includes('defaults') || ['trainer', 'es_manager', 'actor_rollout_ref'].every(key => keys.includes(key));
};

const buildsOnOurs = (text: string): boolean =>
  /^defaults:\s*(\[|\n\s*-)\s*(base|envs|_\d+_\w+|quickstart|ppo_trainer)\b/m.test(text);
