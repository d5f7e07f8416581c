// docs/METRICS.md contains every key that RAGEN logs, and its guides refer only to defined keys. The keys that runs log
// are checked in test/unit/trainer/run/configurations.runs.test.ts and ragen-configurations.test.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { meaningOf, parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { collapseMetrics } from '../../../extension/trainer/diagnostics/collapse-metrics';

const text = readFileSync(join(__dirname, '../../../docs/METRICS.md'), 'utf8');
const meanings = parseMetricMeanings(text);
const unknown = (keys: readonly string[]) => keys.filter(key => meaningOf(meanings, key) === undefined);

describe("RAGEN's keys", () => {
  const stats = ['mean', 'max', 'min'];
  const under = (prefix: string, keys: readonly string[]) => keys.map(key => `${prefix}/${key}`);

  test.each([
    ['rollout', ['in_group', 'chosen_in_group'].flatMap(a => ['std', 'max', 'mean'].map(b => `${a}_${b}`))],
    [
      'rollout',
      ['', 'chosen_'].flatMap(a =>
        ['reward', 'entropy', 'length'].flatMap(b => ['std', 'max', 'mean'].map(c => `${a}in_group_${b}_${c}`)),
      ),
    ],
    ['rollout', ['filter_kept_count', 'filter_kept_ratio', 'filter_zero_count', 'empty_after_filter', 'ref_log_prob']],
    ['train', ['batch_size', 'num_mini_batches', 'rollout_attempts', 'response_length', 'soft_reweight_mean']],
    ['early_stopped', ['empty_filtered_steps', 'reward_variance_collapse', 'low_validation_success']],
    [
      'timing_s',
      [
        ...[
          'gen',
          'collapse_metrics',
          'filter',
          'old_log_prob',
          'ref',
          'values',
          'adv',
          'update_critic',
          'update_actor',
        ],
        ...[
          'testing',
          'save_checkpoint',
          'step',
          'train_step',
          'eval_step',
          'train_total',
          'eval_total',
          'collapse_total',
        ],
        ...['total', 'collapse_first_turn_step', 'collapse_multi_turn_step'],
      ],
    ],
    ['timing_per_token_ms', ['gen', 'update_actor']],
    ['perf', ['total_num_tokens', 'time_per_step', 'throughput', 'log_prob_tokens_per_s', 'ref_tokens_per_s']],
    ['perf', ['cpu_cores', 'cpu_machine', 'memory_machine', 'gpu_busy', 'gpu_memory_mb']],
    ['critic', ['score', 'rewards', 'advantages', 'returns', 'values'].flatMap(key => under(key, stats))],
    ['collapse', ['valid_thinking_rate', 'first_turn_valid_rate', 'first_turn_num_total', 'first_turn_num_valid']],
    [
      'grad_norm',
      ['all', 'bucket_1'].flatMap(bucket =>
        under(bucket, ['task', 'entropy', 'kl', 'per_sample/task', 'per_token/kl', 'loss/policy', 'reward_std_mean']),
      ),
    ],
    ['grad_norm_prefilter', ['all/task', 'bucket_6/per_token/entropy', 'task']],
    ['grad_analysis', ['source_env_groups', 'adjusted_batch_size', 'uses_training_batch']],
  ])('%s/… are documented', (prefix, keys) => expect(unknown(under(prefix, keys))).toEqual([]));

  test('including those of the collapse diagnosis', () => {
    const scores = {
      perToken: [
        [-1, -2],
        [-2, -1],
      ],
      lengths: [3, 3],
      columns: [0, 1],
      signatures: ['a', 'b'],
    };
    const { metrics } = collapseMetrics(scores);
    expect(Object.keys(metrics).length).toBeGreaterThan(25);
    for (const family of ['collapse_first_turn_sample', 'collapse_trajectory_sample'])
      expect(unknown(under(family, Object.keys(metrics)))).toEqual([]);
  });
});

test('the guides refer only to documented keys', () => {
  const guides = text.split('\n').filter(line => line.startsWith('| **'));
  expect(guides.length).toBeGreaterThan(35);
  const names = guides.flatMap(line => [...line.split(' | ')[0].matchAll(/\*\*([^*]+)\*\*/g)].map(([, name]) => name));
  const keys = Object.keys(meanings);
  const isKnown = (name: string): boolean => {
    const key = name.replaceAll('‹', '<').replaceAll('›', '>');
    return (
      Object.hasOwn(meanings, key) ||
      keys.some(known =>
        known
          .split(/[/_]/)
          .join('/')
          .endsWith(`/${key.split(/[/_]/).join('/')}`),
      )
    );
  };
  expect(names.filter(name => !isKnown(name))).toEqual([]);
});

test('every guide has a formula, a healthy range, the meaning of a change, and a remedy', () => {
  for (const line of text.split('\n').filter(line => line.startsWith('| **')))
    expect(line.slice(2, -2).split(' | '), line).toHaveLength(5);
});
