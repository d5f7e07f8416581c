// Failure to score an episode with a checkpoint: a notification appears only when the user asked for the scores.
import { expect, it, vi } from 'vitest';
import { TraceScores, type Scorer } from '../../../../extension/vscode/traces/trace-scores';
import { UserError } from '../../../../extension/common/user-error';

vi.mock('vscode', () => ({
  EventEmitter: class {
    event = () => ({ dispose: () => undefined });
    fire = () => undefined;
    dispose = () => undefined;
  },
  ProgressLocation: { Window: 10 },
  l10n: { t: (message: string) => message },
  window: {
    withProgress: (_: unknown, task: (progress: { report(): void }) => Promise<unknown>) =>
      task({ report: () => undefined }),
  },
}));

const location = { folder: '/w/.ragen/runs/old', mode: 'train' as const, step: 1, id: 'train-000001-g000-m00' };

it('is cached and logged when an overlay requested it, and shown when the user did', async () => {
  const rescore = vi.fn<Scorer['rescore']>(() => Promise.reject(new UserError('run old: it is of another version')));
  const [onError, log] = [vi.fn(), vi.fn()];
  const scores = new TraceScores({ rescore, checkpoints: () => Promise.resolve([]) }, { onError, log });
  const settled = () => new Promise(resolve => setImmediate(resolve));
  scores.request(location, 'shown');
  await settled();
  expect([scores.known(location), scores.failure(location)]).toEqual([undefined, 'run old: it is of another version']);
  scores.request(location, 'shown');
  expect([rescore.mock.calls.length, onError.mock.calls.length, log.mock.calls.length]).toEqual([1, 0, 1]);
  scores.request(location, 'requested');
  await settled();
  expect([rescore.mock.calls.length, onError.mock.calls.length]).toEqual([2, 1]);
  // A user request during an overlay's request is notified of the same failure.
  const other = { ...location, id: 'train-000001-g000-m01' };
  scores.request(other, 'shown');
  scores.request(other, 'requested');
  await settled();
  expect([rescore.mock.calls.length, onError.mock.calls.length]).toEqual([3, 2]);
});
