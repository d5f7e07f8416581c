// The charts that are planned by name, in groups: first the metrics that show whether a run is healthy, then the metrics
// that an RL practitioner checks next. catalogue.ts fills the plan with the keys of a run.

/** A chart that is planned by name. */
export interface Planned {
  /** Identifier in the view settings; never changed, because saved layouts contain it. */
  id: string;
  title: string;
  /**
   * Keys or patterns of the chart's lines; of a list of keys, only the first that the run has is used. If `first` is
   * set, only the first key or pattern that the run has is used.
   */
  keys: (string | RegExp | readonly string[])[];
  first?: boolean;
  /** Whether to show the chart even if the run has not logged any of the chart's keys yet. */
  always?: boolean;
  /**
   * Whether to omit the bands that reach from a minimum to a maximum. Such a band would make the y range so large that
   * the line would look flat.
   */
  plain?: boolean;
  /** Whether keys that end in different names get separate charts, such as `pass@1` and `pass@8`. */
  apart?: boolean;
}

export interface PlannedGroup {
  id: string;
  title: string;
  charts: Planned[];
  /**
   * Pattern of further keys of the group. A key that matches the pattern belongs to the group even if none of the
   * group's charts names it. Each of these keys gets its own chart.
   */
  rest: RegExp;
}

/** Largest number of charts in the overview, unless the user pins more. */
export const overviewSize = 10;

/**
 * Ids of the charts of the overview until the user pins or unpins a chart: the four main charts, the validation, and
 * the time. The charts of metrics with an alarm are added to them.
 */
export const pinnedAtFirst: readonly string[] = [
  ...['success', 'reward', 'in-group reward std', 'entropy'],
  ...['return', 'time per step'],
];

export const groupsOfCharts: PlannedGroup[] = [
  {
    id: 'task',
    title: 'Task',
    charts: [
      { id: 'success', title: 'Success', keys: [/^train\/[^/]+\/success$/, /^val-env\/[^/]+\/success$/], always: true },
      {
        id: 'reward',
        title: 'Reward',
        keys: [
          'critic/score/mean',
          'critic/rewards/mean',
          'charts/avg_episode_return',
          'train/charts/avg_episode_return',
        ],
        first: true,
        always: true,
        plain: true,
      },
      {
        id: 'return',
        title: 'Return',
        keys: [['charts/avg_episode_return', 'train/charts/avg_episode_return'], 'val-env/charts/avg_episode_return'],
      },
      { id: 'pass@k', title: 'Pass@k', keys: [/^(train|val-env)\/[^/]+\/pass@\d+$/], apart: true },
    ],
    rest: /^(charts|critic\/(score|rewards))\//,
  },
  {
    id: 'policy',
    title: 'Policy',
    charts: [
      { id: 'entropy', title: 'Entropy', keys: ['actor/entropy', 'actor/entropy_loss'], first: true, always: true },
      { id: 'KL', title: 'KL', keys: ['actor/ppo_kl', 'actor/kl_loss'] },
      { id: 'divergence from the teacher', title: 'Divergence from the teacher', keys: ['distillation/kl'] },
      { id: 'clip fraction', title: 'Clip fraction', keys: ['actor/pg_clipfrac'] },
      { id: 'policy loss', title: 'Policy loss', keys: ['actor/pg_loss'] },
      { id: 'learning rate', title: 'Learning rate', keys: ['actor/lr', 'critic/lr'] },
    ],
    rest: /^(actor|critic|distillation)\//,
  },
  {
    id: 'stability',
    title: 'Stability',
    charts: [
      { id: 'gradient norm', title: 'Gradient norm', keys: ['actor/grad_norm', 'critic/grad_norm'] },
      {
        id: 'response length',
        title: 'Response length',
        keys: ['response_length/mean', 'train/response_length', 'response_length', 'response_length/characters'],
        first: true,
      },
      { id: 'responses at the limit', title: 'Responses at the limit', keys: ['response_length/clip_ratio'] },
      { id: 'answers without an action', title: 'Answers without an action', keys: ['rollout/invalid_answer_rate'] },
      {
        id: 'environment errors',
        title: 'Environment errors',
        keys: ['train/env_error_rate', 'val-env/env_error_rate'],
      },
      { id: 'age of the rollout in steps', title: 'Age of the rollout in steps', keys: ['rollout/staleness'] },
      { id: 'skipped updates', title: 'Skipped updates', keys: ['actor/skipped_updates'] },
    ],
    rest: /^(rollout_corr|response_length|prompt_length|early_stopped|gradient_analysis|grad)[/_]/,
  },
  {
    id: 'collapse',
    title: 'Collapse',
    charts: [
      {
        id: 'in-group reward std',
        title: 'In-group reward std',
        keys: ['rollout/in_group_reward_std', 'rollout/in_group_std'],
        first: true,
        always: true,
      },
      {
        id: 'mutual information',
        title: 'Mutual information',
        keys: [/^collapse_(first_turn|trajectory)_sample\/mi_estimate$/],
      },
      {
        id: 'reasoning entropy given the prompt',
        title: 'Reasoning entropy given the prompt',
        keys: [/^collapse_(first_turn|trajectory)_sample\/conditional_entropy_est$/],
      },
      {
        id: 'retrieval accuracy',
        title: 'Retrieval accuracy',
        keys: [/^collapse_(first_turn|trajectory)_sample\/retrieval_accuracy$/],
      },
      { id: 'most frequent thought', title: 'Most frequent thought', keys: ['thoughts/most_frequent'] },
      {
        id: 'prompt information of texts',
        title: 'Prompt information in first thoughts (text only)',
        keys: ['thoughts/prompt_information'],
      },
      {
        id: 'share of groups without variance',
        title: 'Share of groups without variance',
        keys: ['rollout/zero_variance_ratio'],
      },
    ],
    rest: /^(collapse|thoughts)/,
  },
  {
    id: 'filter',
    title: 'Rollout filter',
    charts: [
      { id: 'kept groups', title: 'Kept groups', keys: ['rollout/filter_kept_ratio'] },
      { id: 'groups without variance', title: 'Groups without variance', keys: ['rollout/filter_zero_count'] },
      { id: 'reward std, kept groups', title: 'Reward std, kept groups', keys: ['rollout/chosen_in_group_reward_std'] },
    ],
    rest: /^(rollout\/(filter_|in_group|chosen_in_group|empty_)|train\/(soft_reweight|rollout_attempts))/,
  },
  {
    id: 'curriculum',
    title: 'Curriculum',
    charts: [
      { id: 'groups by tag', title: 'Groups by tag', keys: [/^curriculum\/[^/]+\/groups$/] },
      {
        id: 'difficulty pool by tag',
        title: 'Difficulty pool by tag (0 hard, 1 normal, 2 easy)',
        keys: [/^curriculum\/[^/]+\/pool$/],
      },
      {
        id: 'success by tag, moving average',
        title: 'Success by tag, moving average',
        keys: [/^curriculum\/[^/]+\/success$/],
      },
      {
        id: 'tags by pool',
        title: 'Tags by pool',
        keys: ['hard', 'normal', 'easy'].map(pool => `curriculum/${pool}`),
      },
    ],
    rest: /^curriculum\//,
  },
  { id: 'plugins', title: 'Plug-ins', charts: [], rest: /^plugins\// },
  { id: 'environments', title: 'Environments', charts: [], rest: /^(train|val-env|rollout|response)(\/|$)/ },
  {
    id: 'system',
    title: 'System',
    charts: [
      { id: 'machine', title: 'Use of the machine', keys: ['cpu', 'memory'].map(part => `perf/${part}_machine`) },
      { id: 'trainer cores', title: 'Processor cores of the trainer', keys: ['perf/cpu_cores'] },
      { id: 'trainer memory', title: 'Trainer memory (MB)', keys: ['perf/rss_mb'] },
      { id: 'gpu', title: 'GPU in use', keys: ['perf/gpu_busy'] },
      { id: 'gpu memory', title: 'GPU memory (MB)', keys: ['perf/gpu_memory_mb'] },
    ],
    rest: /^perf\/(cpu|memory|gpu|rss)_/,
  },
  {
    id: 'throughput',
    title: 'Throughput',
    charts: [
      { id: 'tokens/s', title: 'Tokens/s', keys: ['perf/throughput'] },
      {
        id: 'tokens/s by phase',
        title: 'Tokens/s by phase',
        keys: ['rollout', 'train', 'log_prob', 'ref'].map(phase => `perf/${phase}_tokens_per_s`),
      },
      { id: 'sampling while training', title: 'Sampling while training', keys: ['rollout/overlap'] },
    ],
    rest: /^perf\/(?!time_per_step)/,
  },
  {
    id: 'timing',
    title: 'Timing',
    charts: [{ id: 'time per step', title: 'Time per step', keys: ['perf/time_per_step'] }],
    rest: /^(timing|perf\/time_per_step)/,
  },
];
