// Overrides that shrink the step of any configuration to a few short episodes, for tests that train what a reader would
// train for hours. They change no algorithm.

/** Overrides of `es_manager.<mode>`: groups of each tag, and episodes of a group. */
export const groupOverrides = (mode: 'train' | 'val', perTag: readonly number[], size?: number): string[] => [
  `es_manager.${mode}.env_groups=${perTag.reduce((sum, n) => sum + n, 0)}`,
  `es_manager.${mode}.env_configs.n_groups=[${perTag.join(',')}]`,
  ...(size === undefined ? [] : [`es_manager.${mode}.group_size=${size}`]),
];

export interface TinySize {
  /** Training groups of two episodes. */
  groups?: number;
  /** Tags of the validation, each of which gets one episode. */
  validationTags?: number;
  turns?: number;
  /** Sampled tokens of a turn. */
  tokens?: number;
  miniBatch?: number;
}

/** Overrides for a step of a few short episodes and a validation of one episode per tag, without trial of memory. */
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

/** Overrides for a run of `n` steps without a validation before them. */
export const stepOverrides = (n: number): string[] => [
  `trainer.total_training_steps=${n}`,
  'trainer.val_before_train=false',
];
