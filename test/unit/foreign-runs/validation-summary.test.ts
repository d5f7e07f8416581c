// Metrics of validation rollouts, by hand; and evaluations of other trainers, whose dashboard has them.
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import type { ForeignEpisode } from '../../../extension/foreign-runs/adapter';
import { episodeRecord } from '../../../extension/foreign-runs/episode-record';
import { ValidationSummary } from '../../../extension/foreign-runs/validation-summary';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

function summarised(rollouts: readonly [group: number, rollout: Partial<ForeignEpisode>][]) {
  const summary = new ValidationSummary();
  rollouts.forEach(([group_id, rollout], i) => {
    const whole: ForeignEpisode = {
      ...{ group: String(group_id), tag: 'lake', reward: 0, success: null },
      messages: [
        { role: 'user', content: 'Where?' },
        { role: 'assistant', content: 'Up' },
      ],
      ...rollout,
    };
    summary.add(episodeRecord(whole, { mode: 'val', step: 0, group_id, member: 0, env_id: i }));
  });
  return summary.result();
}

it('computes success, pass@k, means of metrics and counts; failed rollouts are only counted', () => {
  const { metrics, episodes } = summarised([
    [0, { reward: 1, success: true, metrics: { moves: 2, 'components/goal': 1 } }],
    [0, { reward: 0, success: false, metrics: { moves: 4 } }],
    [1, { reward: 0.5, success: false }],
    [1, { reward: 0, success: false }],
    [2, { reward: 9, success: true, error: 'no sandbox' }],
    [3, { reward: 3, tag: 'a/b' }],
  ]);
  expect(episodes).toBe(6);
  expect(metrics).toEqual({
    'val-env/lake/success': 0.25,
    'val-env/lake/pass@2': 0.5,
    'val-env/lake/num_episodes': 4,
    'val-env/lake/moves': 3,
    'val-env/lake/components/goal': 1,
    'val-env/a_b/num_episodes': 1, // its success is unknown
    'val-env/charts/avg_episode_return': 0.9,
    'val-env/num_turns/mean': 1,
    'val-env/num_episodes': 5,
    'val-env/num_prompts': 4,
    'val-env/env_error_rate': Number((1 / 6).toPrecision(9)),
  });
  expect(summarised([])).toEqual({ metrics: {}, episodes: 0 });
});

it('verifiers 0.4: the evaluation has its rewards, success and counts', async () => {
  const { folder, metrics } = await attachOnce(workspace(), join(samples, 'verifiers-lake-count'));
  expect(metrics).toMatchObject([
    {
      ...{ step: 0, 'val-env/num_episodes': 6, 'val-env/num_prompts': 2, 'val-env/lake-count-v1/num_episodes': 6 },
      ...{ 'val-env/charts/avg_episode_return': expect.closeTo(1 / 6), 'val-env/env_error_rate': 0 },
      'val-env/lake-count-v1/characters': expect.any(Number),
    },
  ]);
  expect(Object.keys(metrics[0]).filter(name => name.includes('/components/'))).toHaveLength(1);
  expect(folder.readStatus()).toMatchObject({ episodes: { done: 6, of: 18 }, reward: expect.closeTo(1 / 6) });
  const derived = JSON.parse(readFileSync(folder.file('derived-metrics.json'), 'utf8')) as { names: string[] };
  expect(derived.names).toContain('val-env/lake-count-v1/num_episodes');
});

it('verifiers before 0.4: what metadata.json has is not derived, and its environment names the rollouts', async () => {
  const { folder, metrics, episodes } = await attachOnce(workspace(), join(samples, 'verifiers/outputs/evals'));
  expect(metrics[0]).toMatchObject({
    ...{ 'val-env/frozenlake/success': 0.25, 'val-env/frozenlake/pass@1': 0.25, 'val-env/frozenlake/num_episodes': 4 },
    ...{ 'val-env/charts/avg_episode_return': 0.25, 'val-env/num_prompts': 2 },
  });
  expect(episodes['val-000000'][0].tag).toBe('frozenlake');
  expect(folder.readStatus()).toMatchObject({ episodes: { done: 4, of: 4 }, success: 0.25, success_of: 'val' });
  const { names } = JSON.parse(readFileSync(folder.file('derived-metrics.json'), 'utf8')) as { names: string[] };
  expect(names).toContain('val-env/frozenlake/num_episodes');
  expect(names).not.toContain('val-env/frozenlake/success');
});

it('a trainer with other names for its environments keeps them: nothing is derived by tag', async () => {
  const folder = join(workspace(), 'verl');
  const write = (name: string, lines: readonly object[]): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), lines.map(line => `${JSON.stringify(line)}\n`).join(''));
    utimesSync(join(folder, name), new Date(0), new Date(0)); // a file that changed a moment ago may still be written
  };
  write('log.jsonl', [1, 2].map(step => ({ step, data: { 'val-core/openai/gsm8k/acc/mean@1': 0.5 } }))); // prettier-ignore
  const rollout = { input: 'user\na', output: 'b', score: 1, acc: 1 };
  write('validation/1.jsonl', [rollout, { ...rollout, score: 0, acc: 0 }]);
  write('validation/2.jsonl', [{ ...rollout, data_source: 'openai/gsm8k' }]);
  const { metrics } = await attachOnce(workspace(), folder);
  const names = (step: number) => Object.keys(metrics[step - 1]).filter(name => name.startsWith('val-env/'));
  const always = ['charts/avg_episode_return', 'num_turns/mean', 'num_episodes', 'num_prompts', 'env_error_rate'];
  const untagged = always.map(name => `val-env/${name}`);
  expect(names(1).sort()).toEqual(['val-env/openai_gsm8k/success', ...untagged].sort());
  expect(names(2)).toContain('val-env/openai_gsm8k/num_episodes');
  expect(metrics[1]).toMatchObject({ 'val-env/openai_gsm8k/success': 0.5 }); // as the trainer logged it
});

it('VAGEN’s and RAGEN’s evaluations have a dashboard, too', async () => {
  const vagen = await attachOnce(workspace(), join(samples, 'vagen/rollouts'));
  expect(vagen.metrics).toMatchObject([{ step: 0, 'val-env/FrozenLake/success': 1 }]);
  expect(vagen.folder.readStatus()).toMatchObject({ episodes: { done: 1, of: 1 }, success: 1 });
  const ragen = await attachOnce(workspace(), join(samples, 'ragen'));
  expect(ragen.metrics.map(line => [line.step, line['val-env/FrozenLake/num_episodes']])).toEqual(
    [[1, 4], [2, 4], [3, 4]], // prettier-ignore
  );
});
