// Steps with non-finite values: the definition of a skipped step, the reports, the conditions for saving a checkpoint,
// and the end of the run.
import { expect, test } from 'vitest';
import { NotFiniteError } from '../../../../extension/engine/optimizer/not-finite';
import { afterSkips, nothingSkipped, refuseSkips, stepOrSkip } from '../../../../extension/trainer/loop/skipped-steps';
import { checkpointDue } from '../../../../extension/trainer/loop/checkpoint-due';
import type { SkippedSteps } from '../../../../extension/trainer/loop/skipped-steps';

const sentences: string[] = [];
const journal = { event: (_: string, message: string) => void sentences.push(message) };
const after = (
  before: SkippedSteps,
  metrics: Record<string, number>,
  failure: NotFiniteError | null = null,
  step = 7,
) => afterSkips(before, { metrics, failure }, journal, step);
const policy = (skipped: number, of: number) => ({ 'actor/skipped_updates': skipped, 'train/num_mini_batches': of });

test('a non-finite step ends without an update, and any other error propagates', async () => {
  const { metrics, failure } = await stepOrSkip(() => Promise.reject(new NotFiniteError('no numbers')));
  expect(failure?.message).toBe('no numbers');
  expect(metrics).toMatchObject({ 'train/skipped_step': 1, 'perf/throughput': 0 });
  expect(metrics['perf/time_per_step']).toBeGreaterThanOrEqual(0);
  await expect(stepOrSkip(() => Promise.reject(new TypeError('else')))).rejects.toThrow('else');
  expect(await stepOrSkip(() => Promise.resolve({ a: 1 }))).toEqual({ metrics: { a: 1 }, failure: null });
});

test('the first skipped step of a series is reported, and a finite step ends the series', () => {
  const some = after(nothingSkipped, policy(1, 4));
  expect(some).toMatchObject({ partly: 1, wholly: 0, sound: true });
  const more = after(some, policy(2, 4), null, 8);
  expect(sentences.splice(0)).toEqual([
    expect.stringMatching(/^training: 1 optimizer steps of the policy in step 7 were skipped .* lower /),
  ]);
  const metrics = policy(4, 4);
  const all = after(more, metrics, null, 9);
  expect(all).toMatchObject({ partly: 3, wholly: 1, sound: true });
  expect(metrics).toMatchObject({ 'train/skipped_step': 1 });
  expect(sentences.splice(0)).toEqual([
    expect.stringMatching(/^step 9 changed no weights: training: 4 optimizer steps/),
  ]);
  expect(after(all, policy(0, 4))).toEqual(nothingSkipped);
  expect(after(all, {})).toEqual(nothingSkipped); // the filter kept no group, which does not count as skipped
  expect(sentences).toEqual([]);
});

test('a step in which only the critic is skipped is reported, and counts as trained', () => {
  const metrics = { ...policy(0, 4), 'critic/skipped_updates': 4 };
  expect(after(nothingSkipped, metrics)).toMatchObject({ partly: 1, wholly: 0 });
  expect(metrics).not.toHaveProperty('train/skipped_step');
  expect(sentences.splice(0)).toEqual([expect.stringContaining('4 optimizer steps of the critic in step 7')]);
});

test('only checkpoints of a finite policy are saved', () => {
  expect([9, 10, 11].map(step => checkpointDue(step, 10, nothingSkipped))).toEqual([false, true, false]);
  expect(checkpointDue(10, -1, nothingSkipped)).toBe(false);
  const unsound = after(nothingSkipped, {}, new NotFiniteError('no numbers'));
  expect([9, 10].map(step => checkpointDue(step, 10, unsound))).toEqual([false, false]);
  const first = after(nothingSkipped, policy(4, 4));
  const second = after(first, policy(4, 4));
  expect([first, second].map(skipped => checkpointDue(9, 10, skipped))).toEqual([true, false]);
  expect(checkpointDue(10, 10, second)).toBe(false);
});

test('too many consecutive skipped steps end the run with a message', () => {
  const workbench = { max_skipped_steps: 1 } as Parameters<typeof refuseSkips>[1]['workbench'];
  const first = after(nothingSkipped, policy(4, 4));
  expect(() => refuseSkips(first, { workbench })).not.toThrow();
  expect(() => refuseSkips(after(first, policy(4, 4)), { workbench })).toThrow(
    /^training: .* \(2 consecutive steps changed no weights; workbench\.max_skipped_steps is 1\)$/,
  );
});
