import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { meaningOf, parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { metricLines } from '../../e2e/preview/data';

const meanings = parseMetricMeanings(readFileSync(new URL('../../../docs/METRICS.md', import.meta.url), 'utf8'));

describe('parsing meanings', () => {
  const read = parseMetricMeanings(
    '# T\n\n| key | meaning |\n|---|---|\n| `a/b` | One. |\r\n| `c`, `d/<k>` | Of `x` two. |\n| `a/b` | Again. |\n| `p@<k>` | Pass. |\ntext `e` | no |\n',
  );

  it('takes keys in backticks and their sentence, the first of duplicates', () => {
    expect(read).toEqual({ 'a/b': 'One.', c: 'Of x two.', 'd/<k>': 'Of x two.', 'p@<k>': 'Pass.' });
  });

  it('lets a placeholder stand for one part, with an exact key before a pattern', () => {
    expect(meaningOf(read, 'd/anything')).toBe('Of x two.');
    expect(meaningOf(read, 'd/any/thing')).toBeUndefined();
    expect(meaningOf(read, 'p@16')).toBe('Pass.');
    expect(meaningOf({ 'd/<k>': 'pattern', 'd/x': 'exact' }, 'd/x')).toBe('exact');
    expect(meaningOf(read, 'constructor')).toBeUndefined();
  });
});

describe('docs/METRICS.md', () => {
  it('has one sentence for each key', () => {
    const documented = Object.entries(meanings);
    expect(documented.length).toBeGreaterThan(50);
    for (const [key, sentence] of documented) expect(sentence, key).toMatch(/^[A-Z0-9].*[^.]\.$/);
  });

  it.each([
    ...[
      'pg_loss',
      'pg_clipfrac',
      'pg_clipfrac_lower',
      'ppo_kl',
      'entropy_loss',
      'entropy',
      'grad_norm',
      'kl_loss',
      'kl_coef',
      'lr',
    ].map(key => `actor/${key}`),
    ...['score', 'rewards', 'advantages', 'returns', 'values'].flatMap(key =>
      ['mean', 'max', 'min'].map(stat => `critic/${key}/${stat}`),
    ),
    ...['vf_loss', 'vf_clipfrac', 'vpred_mean', 'grad_norm', 'vf_explained_var'].map(key => `critic/${key}`),
    ...['response_length', 'prompt_length'].flatMap(key =>
      ['mean', 'max', 'min', 'clip_ratio'].map(stat => `${key}/${stat}`),
    ),
    ...['success', 'pass@16', 'num_actions', 'action_is_valid', 'non-zero/success', 'something_of_mine'].flatMap(
      key => [`train/Bandit/${key}`, `val-env/Bandit/${key}`],
    ),
    ...[
      'gen',
      'filter',
      'old_log_prob',
      'ref',
      'values',
      'adv',
      'update_critic',
      'update_actor',
      'testing',
      'save_checkpoint',
      'step',
      'unheard_of',
    ].map(key => `timing_s/${key}`),
    ...[
      'in_group_reward_std',
      'chosen_in_group_reward_mean',
      'in_group_length_std',
      'filter_kept_ratio',
      'filter_zero_count',
      'ref_log_prob',
      'empty_after_filter',
      'max_tile',
    ].map(key => `rollout/${key}`),
    ...['total_num_tokens', 'time_per_step', 'throughput'].map(key => `perf/${key}`),
    'charts/avg_episode_return',
    'train/soft_reweight_mean',
    'early_stopped/reward_variance_collapse',
  ])('documents %s', key => expect(meaningOf(meanings, key)).toMatch(/^[A-Z0-9].*[^.]\.$/));

  it("documents every key of the page tests' runs", () => {
    const keys = new Set(metricLines(20).flatMap(line => Object.keys(line)));
    expect([...keys].filter(key => meaningOf(meanings, key) === undefined)).toEqual([]);
  });
});
