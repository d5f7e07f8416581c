// Times of a step under RAGEN's keys, and the time that a rollout waits for environments.
import { expect, test } from 'vitest';
import { IdleGeneratorClock } from '../../../../extension/trainer/rollout/idle-generator-clock';
import { lengthsOf } from '../../../../extension/trainer/loop/metric-statistics';
import { noTimeSpent, timesPerToken, withTimes } from '../../../../extension/trainer/loop/step-times';

test('training time excludes validation and diagnostics, and totals accumulate over steps', () => {
  const first = withTimes(
    { 'timing_s/step': 10, 'timing_s/testing': 3, 'timing_s/collapse_metrics': 2 },
    noTimeSpent,
    11,
  );
  expect(first.metrics).toMatchObject({
    'timing_s/train_step': 5,
    'timing_s/eval_step': 3,
    'timing_s/train_total': 5,
    'timing_s/eval_total': 3,
    'timing_s/total': 11,
  });
  expect(first.metrics).not.toHaveProperty(['timing_s/save_checkpoint']);
  const second = withTimes({ 'timing_s/step': 4 }, { ...first.spent, saving: 0.5 }, 16);
  expect(second.metrics).toMatchObject({
    'timing_s/save_checkpoint': 0.5,
    'timing_s/train_step': 4,
    'timing_s/eval_step': 0,
    'timing_s/train_total': 9,
    'timing_s/eval_total': 3,
  });
  expect(second.spent).toEqual({ training: 9, validation: 3 }); // a checkpoint's time is counted once
  expect(noTimeSpent).toEqual({ training: 0, validation: 0 });
});

test('a step without an update reports its elapsed time', () => {
  expect(withTimes({ 'perf/time_per_step': 2 }, noTimeSpent, 3).metrics['timing_s/train_step']).toBe(2);
});

test('generation time is per sampled token, the other phases per token of the trained samples', () => {
  const seconds = (phase: string) => ({ gen: 2, update_actor: 4, testing: 9 })[phase] ?? 0;
  expect(timesPerToken({ seconds }, { sampled: 500, trained: 2000 })).toEqual({
    'timing_per_token_ms/gen': 4,
    'timing_per_token_ms/update_actor': 2,
  });
  expect(timesPerToken({ seconds }, { sampled: 500, trained: 0 })).toEqual({ 'timing_per_token_ms/gen': 4 });
});

test('the share of prompts at the length limit is reported', () => {
  const samples = [Uint8Array.of(0, 0, 1), Uint8Array.of(0, 1, 1), Uint8Array.of(0, 0, 0, 1)].map(mask => ({ mask }));
  expect(lengthsOf(samples, 3)['prompt_length/clip_ratio']).toBeCloseTo(1 / 3);
});

test('time counts as waiting when environments are running and the generator is idle', async () => {
  let now = 0;
  const clock = new IdleGeneratorClock(() => now);
  const open = () => {
    let end: () => void = () => undefined;
    return { done: new Promise<void>(resolve => (end = resolve)), end: () => end() };
  };
  const [environment, generation, second] = [open(), open(), open()];
  const played = clock.environment(() => environment.done);
  now = 1000; // one second of waiting
  const generated = clock.generation(() => generation.done);
  now = 4000; // three seconds with a busy generator
  generation.end();
  await generated;
  const other = clock.environment(() => second.done);
  now = 6000; // two more seconds, with two concurrent requests
  expect(clock.seconds).toBe(3);
  environment.end();
  second.end();
  await Promise.all([played, other]);
  now = 9000; // no request is running
  expect(clock.seconds).toBe(3);
});

test('a failed request ends its wait', async () => {
  let now = 0;
  const clock = new IdleGeneratorClock(() => now);
  await expect(clock.environment(() => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  now = 5000;
  expect(clock.seconds).toBe(0);
});
