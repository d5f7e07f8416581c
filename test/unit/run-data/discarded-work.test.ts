// What a resume from an earlier checkpoint discards.
import { expect, test } from 'vitest';
import { discardedWork, formatDiscarded } from '../../../extension/run-data/discarded-work';

const at = (...steps: number[]) => steps.map(step => ({ step }));

test('nothing is discarded without a later checkpoint, even if later steps exist', () => {
  expect(discardedWork(10, { finished: 13, checkpoints: [5, 10], events: at(10, 12) })).toBeNull();
  expect(discardedWork(10, { finished: 10, checkpoints: [], events: [] })).toBeNull();
});

test('later steps, checkpoints and events are counted and named', () => {
  const run = { finished: 13, checkpoints: [5, 10, 12], events: at(4, 5, 6, 12, 13) };
  const work = discardedWork(5, run)!;
  expect(work).toEqual({ from: 5, to: 13, checkpoints: 2, events: 3 });
  expect(formatDiscarded(work)).toBe('8 steps (6 to 13), 2 checkpoints and 3 events');
  expect(formatDiscarded(discardedWork(10, run)!)).toBe('3 steps (11 to 13), 1 checkpoint and 2 events');
  expect(formatDiscarded(discardedWork(11, { finished: 12, checkpoints: [12], events: [] })!)).toBe(
    '1 step (12) and 1 checkpoint',
  );
});

test('the last step is that of the newest checkpoint or event if the status is older', () => {
  expect(discardedWork(2, { finished: 0, checkpoints: [2, 4], events: at(5) })?.to).toBe(5);
  expect(discardedWork(2, { finished: 0, checkpoints: [2, 4], events: [] })?.to).toBe(4);
});
