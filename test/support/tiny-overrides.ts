// Overrides that reduce the step of any configuration to a few short episodes, so that tests can train presets that
// take hours otherwise. They change no algorithm.

/** Overrides of `es_manager.<mode>`: the number of groups per tag, and the number of episodes per group. */
export const groupOverrides = (mode: 'train' | 'val', perTag: readonly number[], size?: number): string[] => [
  `es_manager.${mode}.env_groups=${perTag.reduce((sum, n) => sum + n, 0)}`,
  `es_manager.${mode}.env_configs.n_groups=[${perTag.join(',')}]`,
  ...(size === undefined ? [] : [`es_manager.${mode}.group_size=${size}`]),
];

export interface TinySize {
  /** Number of training groups, each with two episodes. */
  groups?: number;
  /** Number of validation tags, each with one episode. */
  validationTags?: number;
  turns?: number;
  /** Maximum sampled tokens per turn. */
  tokens?: number;
  miniBatch?: number;
}

/** Overrides for steps of a few short episodes, one validation episode per tag, and no memory trial. */
export const tinyOverrides = ({
  groups = 1,
  validationTags = 1,
  turns = 1,
  tokens = 8,
  miniBatch = 2,
}: TinySize = {}): string[] => [
  ...groupOverrides('train', [groups], 2),
  ...groupOverrides('val', Array<number>(validationTags).fill(1), 1),
  `ppo_mini_batch_size=${miniBatch}`,
  'micro_batch_size_per_gpu=1',
  `actor_rollout_ref.rollout.response_length=${tokens}`,
  `agent_proxy.max_turn=${turns}`,
  'workbench.threads=1',
  'workbench.try_longest_batch=false',
];

/** Overrides for a run of `n` steps without initial validation. */
export const stepOverrides = (n: number): string[] => [
  `trainer.total_training_steps=${n}`,
  'trainer.val_before_train=false',
];
