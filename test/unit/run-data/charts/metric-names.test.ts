// The names of metrics: complete for docs/METRICS.md, unique, and readable.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseMetricMeanings } from '../../../../extension/run-data/metric-meanings';
import { metricName, nameInTable, quantityName, tagOf } from '../../../../extension/run-data/charts/metric-names';
import { metricLines } from '../../../e2e/preview/data';

const documented = Object.keys(
  parseMetricMeanings(readFileSync(new URL('../../../../docs/METRICS.md', import.meta.url), 'utf8')),
);
/** A key that a run can log, from a documented key with placeholders. */
const logged = (key: string): string =>
  key
    .replace('<tag>', 'Bandit')
    .replace('<k>', '4')
    .replace('<stat>', 'std')
    .replace('<bucket>', 'bucket_1')
    .replace('<other>', 'bucket_2')
    .replace('<part>', 'task')
    .replace('<pair>', 'task_kl')
    .replace('<metric>', 'mi_zscore')
    .replace(/<([a-z]+)>/, 'my_$1');

describe('the names of metrics', () => {
  it.each(documented)('has a name for %s', key => {
    const name = nameInTable(logged(key));
    expect(name, `add ${key} to webview/charts/metric-names.ts`).toMatch(/^[A-Z][^_/<>]*(\(train\/charts\))?[^_/<>]*$/);
  });

  it('names the keys of runs, each differently', () => {
    const keys = [
      ...new Set([
        ...documented.map(logged),
        ...metricLines(20).flatMap(line => Object.keys(line).map(key => key.replace('CoordSokoban', 'Bandit'))),
      ]),
    ];
    const named = new Map<string, string>();
    for (const key of keys) {
      const name = nameInTable(key)!;
      expect(named.get(name) ?? key, name).toBe(key);
      named.set(name, key);
    }
  });

  it.each([
    ['collapse_first_turn_sample/mi_zscore_ema', 'Mutual information, first turns (z-score, EMA)'],
    ['collapse_trajectory_sample/mi_estimate_ci_low', 'Mutual information, all turns, lower bound of 95 %'],
    ['val-env/CoordSokoban/pass@8', 'Pass@8, validation'],
    ['train/Bandit/my_key', 'Environment value: my key, training'],
    ['grad_norm/bucket_2/task', 'Gradient norm, task, bucket 2'],
    ['timing_s/update_actor', 'Time: update of the policy'],
  ])('calls %s “%s”', (key, name) => expect(metricName(key)).toBe(name));

  it('names keys of user code by their parts, and a quantity without its side', () => {
    expect(nameInTable('new_family/x/y')).toBeUndefined();
    expect(metricName('new_family/x/y')).toBe('New family · x · y');
    expect(quantityName('val-env/A/success')).toBe('Success');
    expect(quantityName('charts/avg_episode_return')).toBe('Return');
  });

  it('finds the tag in a key', () => {
    expect(['val-env/A/pass@8', 'train/A/success', 'curriculum/A/pool'].map(tagOf)).toEqual(['A', 'A', 'A']);
    for (const key of ['actor/entropy', 'val-env/response_length/clip_ratio', 'success'])
      expect(tagOf(key)).toBeUndefined();
  });
});
