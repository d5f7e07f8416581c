// The built-in charts, in groups: first the metrics that show whether a run is healthy, then the metrics that an RL
// practitioner checks next. They are plans of the type that plug-ins define (envs/api/plugins/chart.ts); catalogue.ts fills
// the plans with the keys of a run. Invariant: the name of a chart is never changed, because saved layouts contain it.
import type { ChartPlan } from '../../../envs/api/plugins/chart';

export interface PlannedGroup {
  id: string;
  title: string;
  charts: ChartPlan[];
  /**
   * Pattern of further keys of the group. A key that matches the pattern belongs to the group even if none of the
   * group's charts names it. Each of these keys gets its own chart.
   */
  rest: RegExp;
}

/** Start of the keys of lines that plug-ins compute, and of the ids of the charts of plug-ins. */
export const ownStart = 'plugin_charts/';

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
      { name: 'success', title: 'Success', keys: ['train/*/success', 'val-env/*/success'], always: true },
      {
        name: 'reward',
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
        name: 'return',
        title: 'Return',
        keys: [['charts/avg_episode_return', 'train/charts/avg_episode_return'], 'val-env/charts/avg_episode_return'],
      },
      { name: 'pass@k', title: 'Pass@k', keys: ['train/*/pass@*', 'val-env/*/pass@*'], apart: true },
    ],
    rest: /^(charts|critic\/(score|rewards))\//,
  },
  {
    id: 'policy',
    title: 'Policy',
    charts: [
      { name: 'entropy', title: 'Entropy', keys: ['actor/entropy', 'actor/entropy_loss'], first: true, always: true },
      { name: 'KL', title: 'KL', keys: ['actor/ppo_kl', 'actor/kl_loss'] },
      { name: 'divergence from the teacher', title: 'Divergence from the teacher', keys: ['distillation/kl'] },
      { name: 'clip fraction', title: 'Clip fraction', keys: ['actor/pg_clipfrac'] },
      { name: 'policy loss', title: 'Policy loss', keys: ['actor/pg_loss'] },
      { name: 'learning rate', title: 'Learning rate', keys: ['actor/lr', 'critic/lr'] },
    ],
    rest: /^(actor|critic|distillation)\//,
  },
  {
    id: 'stability',
    title: 'Stability',
    charts: [
      { name: 'gradient norm', title: 'Gradient norm', keys: ['actor/grad_norm', 'critic/grad_norm'] },
      {
        name: 'response length',
        title: 'Response length',
        keys: ['response_length/mean', 'train/response_length', 'response_length', 'response_length/characters'],
        first: true,
      },
      { name: 'responses at the limit', title: 'Responses at the limit', keys: ['response_length/clip_ratio'] },
      { name: 'answers without an action', title: 'Answers without an action', keys: ['rollout/invalid_answer_rate'] },
      {
        name: 'environment errors',
        title: 'Environment errors',
        keys: ['train/env_error_rate', 'val-env/env_error_rate'],
      },
      { name: 'age of the rollout in steps', title: 'Age of the rollout in steps', keys: ['rollout/staleness'] },
      { name: 'skipped updates', title: 'Skipped updates', keys: ['actor/skipped_updates'] },
    ],
    rest: /^(rollout_corr|response_length|prompt_length|early_stopped|gradient_analysis|grad)[/_]/,
  },
  {
    id: 'collapse',
    title: 'Collapse',
    charts: [
      {
        name: 'in-group reward std',
        title: 'In-group reward std',
        keys: ['rollout/in_group_reward_std', 'rollout/in_group_std'],
        first: true,
        always: true,
      },
      {
        name: 'mutual information',
        title: 'Mutual information',
        keys: ['collapse_first_turn_sample/mi_estimate', 'collapse_trajectory_sample/mi_estimate'],
      },
      {
        name: 'reasoning entropy given the prompt',
        title: 'Reasoning entropy given the prompt',
        keys: [
          'collapse_first_turn_sample/conditional_entropy_est',
          'collapse_trajectory_sample/conditional_entropy_est',
        ],
      },
      {
        name: 'retrieval accuracy',
        title: 'Retrieval accuracy',
        keys: ['collapse_first_turn_sample/retrieval_accuracy', 'collapse_trajectory_sample/retrieval_accuracy'],
      },
      { name: 'most frequent thought', title: 'Most frequent thought', keys: ['thoughts/most_frequent'] },
      {
        name: 'prompt information of texts',
        title: 'Prompt information in first thoughts (text only)',
        keys: ['thoughts/prompt_information'],
      },
      {
        name: 'share of groups without variance',
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
      { name: 'kept groups', title: 'Kept groups', keys: ['rollout/filter_kept_ratio'] },
      { name: 'groups without variance', title: 'Groups without variance', keys: ['rollout/filter_zero_count'] },
      {
        name: 'reward std, kept groups',
        title: 'Reward std, kept groups',
        keys: ['rollout/chosen_in_group_reward_std'],
      },
    ],
    rest: /^(rollout\/(filter_|in_group|chosen_in_group|empty_)|train\/(soft_reweight|rollout_attempts))/,
  },
  {
    id: 'curriculum',
    title: 'Curriculum',
    charts: [
      { name: 'groups by tag', title: 'Groups by tag', keys: ['curriculum/*/groups'] },
      {
        name: 'difficulty pool by tag',
        title: 'Difficulty pool by tag (0 hard, 1 normal, 2 easy)',
        keys: ['curriculum/*/pool'],
      },
      {
        name: 'success by tag, moving average',
        title: 'Success by tag, moving average',
        keys: ['curriculum/*/success'],
      },
      {
        name: 'tags by pool',
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
      { name: 'machine', title: 'Use of the machine', keys: ['cpu', 'memory'].map(part => `perf/${part}_machine`) },
      { name: 'trainer cores', title: 'Processor cores of the trainer', keys: ['perf/cpu_cores'] },
      { name: 'trainer memory', title: 'Trainer memory (MB)', keys: ['perf/rss_mb'] },
      { name: 'gpu', title: 'GPU in use', keys: ['perf/gpu_busy'] },
      { name: 'gpu memory', title: 'GPU memory (MB)', keys: ['perf/gpu_memory_mb'] },
    ],
    rest: /^perf\/(cpu|memory|gpu|rss)_/,
  },
  {
    id: 'throughput',
    title: 'Throughput',
    charts: [
      { name: 'tokens/s', title: 'Tokens/s', keys: ['perf/throughput'] },
      {
        name: 'tokens/s by phase',
        title: 'Tokens/s by phase',
        keys: ['rollout', 'train', 'log_prob', 'ref'].map(phase => `perf/${phase}_tokens_per_s`),
      },
      { name: 'sampling while training', title: 'Sampling while training', keys: ['rollout/overlap'] },
    ],
    rest: /^perf\/(?!time_per_step)/,
  },
  {
    id: 'timing',
    title: 'Timing',
    charts: [{ name: 'time per step', title: 'Time per step', keys: ['perf/time_per_step'] }],
    rest: /^(timing|perf\/time_per_step)/,
  },
];
