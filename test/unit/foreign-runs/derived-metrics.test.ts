// Derived metrics in metrics.jsonl beside the trainer's, and the alarms that follow from both.
import { appendFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventSchema } from '../../../extension/run-data/run-events';
import { AttachedRun } from '../../../extension/foreign-runs/attached-run';
import { followRun } from '../../../extension/foreign-runs/follow-run';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import type { RunFolder } from '../../../extension/trainer/store/run-folder';
import { attachOnce } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

/** Creates a verl run whose steps have a line of metrics and a group of rollouts with these rewards. */
function foreign() {
  const folder = join(workspace(), 'verl-run');
  mkdirSync(join(folder, 'rollouts'), { recursive: true });
  const metrics = join(folder, 'log.jsonl');
  const old = new Date(Date.now() - 60_000);
  return {
    folder,
    line: (step: number, data: Record<string, number>) =>
      appendFileSync(metrics, `${JSON.stringify({ step, data: { 'actor/lr': 1, ...data } })}\n`),
    rollouts(step: number, rewards: readonly number[], thought = (i: number) => `thought ${step} ${i}`) {
      const file = join(folder, 'rollouts', `${step}.jsonl`);
      const lines = rewards.map((score, i) =>
        JSON.stringify({
          input: 'user\nWhere?\nassistant\n',
          output: `<think>${thought(i)}</think><answer>up</answer>`,
          score,
        }),
      );
      writeFileSync(file, lines.join('\n') + '\n');
      utimesSync(file, old, old);
    },
  };
}

const derivedNames = (folder: RunFolder): string[] =>
  (JSON.parse(readFileSync(folder.file('derived-metrics.json'), 'utf8')) as { names: string[] }).names;
const alarms = (folder: RunFolder): unknown[] =>
  readFileSync(folder.file('events.jsonl'), 'utf8')
    .split('\n')
    .filter(text => text !== '')
    .map(text => eventSchema.parse(JSON.parse(text)))
    .filter(({ kind }) => kind === 'alarm')
    .map(({ step, data }) => [data?.alarm, step]);

it('fills only names that the trainer never logs, also after a restart and when the trainer begins to log one', async () => {
  const { folder, line, rollouts } = foreign();
  line(1, { 'critic/score/mean': 0.125 });
  line(2, {});
  rollouts(1, [1, 0]);
  rollouts(2, [1, 1]);
  rollouts(3, [0, 0]); // the trainer has not logged step 3 yet
  const first = await attachOnce(workspace(), folder);
  const std = 'rollout/in_group_reward_std';
  const show = (each: Record<string, unknown>) => [each['step'], each['critic/score/mean'], each[std]];
  expect(first.metrics.map(show)).toEqual([[1, 0.125, 0.707106781], [2, undefined, 0]]); // prettier-ignore
  expect(derivedNames(first.folder)).toContain(std);
  expect(derivedNames(first.folder)).not.toContain('critic/score/mean');
  expect(first.metrics[0]['thoughts/most_frequent']).toBe(0.5);

  line(3, { [std]: 0.5 });
  const second = await attachOnce(workspace(), folder, { earlier: first.folder });
  expect(second.metrics.map(show)).toEqual([[1, 0.125, undefined], [2, undefined, undefined], [3, undefined, 0.5]]); // prettier-ignore
  expect(derivedNames(second.folder)).not.toContain(std);
  expect(second.metrics[2]['rollout/zero_variance_ratio']).toBe(1);
});

it('has rows for the steps of rollouts if the trainer logs no metrics', async () => {
  const { folder, rollouts } = foreign();
  rollouts(4, [1, 0, 0, 0]);
  rollouts(7, [1, 1]);
  const { metrics, folder: run } = await attachOnce(workspace(), folder);
  expect(metrics.map(line => [line.step, line['critic/score/mean']])).toEqual([[4, 0.25], [7, 1]]); // prettier-ignore
  expect(run.readStatus()).toMatchObject({ step: 7, reward: 1 });
});

it('raises the alarms of the Echo Trap, and withdraws those that do not follow from the rows any more', async () => {
  const { folder, line, rollouts } = foreign();
  for (let step = 1; step <= 16; step++) {
    line(step, { 'actor/grad_norm': step === 14 ? 50 : 1 });
    const isTrapped = step > 10;
    rollouts(step, isTrapped ? [1, 1] : [1, 0], isTrapped ? () => 'always the same' : undefined);
  }
  const first = await attachOnce(workspace(), folder);
  expect(alarms(first.folder)).toEqual([
    ['thought_repetition', 13],
    ['gradient_spike', 14],
    ['reward_variance', 15],
  ]);
  const again = await attachOnce(workspace(), folder, { earlier: first.folder });
  expect(alarms(again.folder)).toHaveLength(3);

  for (const step of [12, 13]) rollouts(step, [1, 0]);
  const changed = await attachOnce(workspace(), folder, { earlier: first.folder });
  expect(alarms(changed.folder)).toEqual([
    ['gradient_spike', 14],
    ['thought_repetition', 16],
  ]);
  const events = readFileSync(changed.folder.file('events.jsonl'), 'utf8');
  expect(events).toContain(
    'share of the most frequent thought was above 50 % in each of the last 3 steps: 1, bound 0.5',
  );
});

it('raises alarms while the trainer appends rollouts to its newest step', async () => {
  const { folder, line, rollouts } = foreign();
  for (let step = 1; step <= 14; step++) {
    line(step, { 'actor/grad_norm': step === 14 ? 50 : 1 });
    rollouts(step, [1, 0]);
  }
  const newest = join(folder, 'rollouts', '15.jsonl');
  writeFileSync(newest, '');
  const grow = setInterval(() => utimesSync(newest, new Date(), new Date()), 200);
  const source = await SourceFolder.open(folder);
  const { adapter, run } = await recognise(source);
  const made = await AttachedRun.create(workspace(), source, run, { adapter: adapter.id });
  const stop = new AbortController();
  const following = followRun(made, source, run, {
    ...{ episodeBytes: 1e9, once: false, signal: stop.signal },
    onChange: () => undefined,
  });
  await expect.poll(() => alarms(made), { timeout: 20_000 }).toEqual([['gradient_spike', 14]]);
  expect(made.readStatus()?.state).toBe('running');
  stop.abort();
  await following;
  clearInterval(grow);
}, 30_000);

it('raises no alarm about missing thoughts in a run without reasoning', async () => {
  const { folder, line, rollouts } = foreign();
  for (let step = 1; step <= 4; step++) {
    line(step, {});
    rollouts(step, [1, 0], () => '');
  }
  const { folder: run, metrics } = await attachOnce(workspace(), folder);
  expect(alarms(run)).toEqual([]);
  expect(metrics[0]).not.toHaveProperty(['thoughts/rate']);
  expect(metrics[0]['rollout/invalid_answer_rate']).toBe(0);
});
