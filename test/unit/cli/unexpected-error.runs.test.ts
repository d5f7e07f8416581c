// An unexpected error in a trainer, outside its main flow: the status on disk reports it, no child process is left, and
// the run can be resumed. The error is thrown by a file that Node.js preloads in the trainer only.
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  childrenOf,
  document,
  isAlive,
  killAll,
  leaseOf,
  readRun,
  startDetached,
  statusOf,
  until,
  untilStep,
} from '../../support/terminal';
import { makeWorkspace, type Workspace } from '../../support/workspace';

let workspace: Workspace;
beforeEach(() => void (workspace = makeWorkspace()));
afterEach(async () => {
  delete process.env.NODE_OPTIONS;
  await killAll(workspace.folder);
  workspace.remove();
});

test.each([
  ['an exception', `throw new Error('boom')`],
  ['a rejection', `Promise.reject(new Error('boom'))`],
])(
  '%s without a handler is recorded in the run’s status, and a resume continues',
  { timeout: 120_000 },
  async (_, statement) => {
    const flag = join(workspace.folder, 'crash');
    const preload = `if (process.argv[1]?.endsWith('trainer.cjs')) setInterval(() => { if (require('node:fs').existsSync(${JSON.stringify(flag)})) { ${statement}; } }, 20).unref();`;
    process.env.NODE_OPTIONS = `--require=${JSON.stringify(workspace.write('preload.cjs', preload))}`;
    const run = await startDetached(workspace.folder, [
      'trainer.total_training_steps=500',
      'workbench.early_stops=[]',
      'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0',
    ]);
    const { pid } = leaseOf(run)!;
    await untilStep(run, 2);
    const children = childrenOf(pid);
    workspace.write('crash', '');
    await until('the trainer is gone', () => !isAlive(pid));
    expect(statusOf(run)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/^trainer: an unexpected error occurred \(boom\): resume/),
    });
    expect(readRun(run).events.at(-1)?.message).toMatch(/^failed: trainer: an unexpected error occurred/);
    expect(leaseOf(run)).toBeNull();
    await until('its environment process is gone', () => !children.some(isAlive));

    delete process.env.NODE_OPTIONS;
    const { code } = await document(workspace.folder, ['resume', basename(run), '--detach']);
    expect(code).toBe(0);
    await untilStep(run, statusOf(run)!.step + 1);
    expect(readRun(run).events.some(({ kind }) => kind === 'resume')).toBe(true);
  },
);
