// The time limit of a thread's calls, on simulated time. The limit restarts with each call and each sign of progress,
// and is longer for a worker that runs no environment code.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { CallWatch } from '../../../../extension/environments/runtime/threads/call-watch';
import { noItem, progress } from '../../../../extension/environments/runtime/threads/worker-messages';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A watch over a shared array, with the times at which it reported an exceeded limit. */
function watched(limit = { ms: 1000 }) {
  const shared = new Int32Array(progress.slots).fill(noItem);
  const state = { pending: true, exceeded: [] as number[] };
  const begun = performance.now();
  const watch = new CallWatch(shared, () => limit.ms, {
    pending: () => state.pending,
    exceeded: () => {
      state.exceeded.push(Math.round(performance.now() - begun));
      watch.stop();
    },
  });
  const enters = (item: number) => {
    shared[progress.item] = item;
    shared[progress.calls]++;
  };
  return { shared, state, watch, enters, limit };
}

test('a call without progress for the duration of the limit is reported', () => {
  const { state, watch, enters } = watched();
  watch.start();
  enters(0);
  vi.advanceTimersByTime(1100);
  expect(state.exceeded).toEqual([]); // the watch first saw the call after 125 ms
  vi.advanceTimersByTime(100);
  expect(state.exceeded).toEqual([1125]);
});

test('each call has the full limit, also within one item', () => {
  const { state, watch, enters } = watched();
  watch.start();
  for (let i = 0; i < 10; i++) {
    enters(0);
    vi.advanceTimersByTime(800);
  }
  expect(state.exceeded).toEqual([]);
});

test('a worker that runs no call has ten more seconds', () => {
  const { state, watch } = watched();
  watch.start();
  vi.advanceTimersByTime(20_000);
  expect(state.exceeded).toEqual([11_000]);
});

test('a changed limit counts from the time of its change, and no limit applies without pending items', () => {
  const { state, watch, enters, limit } = watched();
  watch.start();
  enters(0);
  vi.advanceTimersByTime(900);
  limit.ms = 2000;
  vi.advanceTimersByTime(1900);
  expect(state.exceeded).toEqual([]);
  state.pending = false;
  vi.advanceTimersByTime(20_000);
  expect([state.exceeded, vi.getTimerCount()]).toEqual([[], 0]);
});
