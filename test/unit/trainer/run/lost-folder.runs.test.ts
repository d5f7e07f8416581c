// A trainer whose run folder or lease is removed ends with one sentence that states the cause and the remedy. It writes
// no file in the old location, and leaves no process and no lease.
import { existsSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RunReader } from '../../../../extension/vscode/run-files/run-reader';
import { startOf } from '../../../../extension/node/process-identity';
import {
  childrenOf,
  document,
  isAlive,
  killAll,
  leaseOf,
  ragen,
  runsOf,
  startDetached,
  until,
  untilStep,
} from '../../../support/terminal';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

const endless = [
  'trainer.total_training_steps=100000',
  'workbench.early_stops=[]',
  'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0',
];

let workspace: Workspace;
beforeEach(() => void (workspace = makeWorkspace()));
afterEach(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

/**
 * Messages that a trainer logged at level `error` or above, and whether its log contains other output, from native
 * code.
 */
function lastErrors(log: string): { errors: string[]; native: boolean } {
  const lines = readFileSync(log, 'utf8').split('\n');
  // Output of native code that does not end its line stands before an entry.
  const entries = lines
    .flatMap(line => /\{"level":.*\}$/.exec(line) ?? [])
    .map(entry => JSON.parse(entry) as { level: number; msg: string });
  return {
    errors: entries.filter(({ level }) => level >= 50).map(({ msg }) => msg),
    native: lines.some(line => /Napi|terminate|^ {4}at /.test(line)),
  };
}

test.each(['moved', 'deleted'])(
  'a run whose folder is %s during training ends with one sentence, and leaves no process or file',
  { timeout: 120_000 },
  async how => {
    const following = ragen(workspace.folder, ['train', '--config-name', 'words', ...endless]);
    const run = await until('there is a run', () => runsOf(workspace.folder)[0]);
    await untilStep(run, 2);
    const { pid } = leaseOf(run)!;
    const children = childrenOf(pid);
    expect(children.length).toBeGreaterThan(0);
    const moved = join(workspace.folder, 'elsewhere', basename(run));
    workspace.write('elsewhere/keep', '');
    renameSync(run, moved);
    if (how === 'deleted') rmSync(moved, { recursive: true, maxRetries: 9 });
    await until('the trainer is gone', () => !isAlive(pid));
    await until('its children are gone', () => !children.some(isAlive));
    expect(readdirSync(dirname(run))).toEqual([]);
    const sentence = `run ${basename(run)}: its folder ${run} was moved, renamed or deleted during the training: put the folder back there, then resume the run`;
    const { code, stderr } = await following;
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(sentence);
    expect(await new RunReader(run).refresh()).toBe(false);
    if (how === 'deleted') return;
    expect(lastErrors(join(moved, 'trainer.log'))).toEqual({ errors: [sentence], native: false });
    renameSync(moved, run);
    const resumed = await document(workspace.folder, ['resume', basename(run), '--detach']);
    expect(resumed.code, resumed.stderr).toBe(0);
  },
);

test.skipIf(process.platform !== 'linux').each(['of here', 'of an earlier version'])(
  'a CLI that follows a run ends with the sentence when a lease %s names a living process that is not a trainer',
  { timeout: 120_000 },
  async form => {
    const following = ragen(workspace.folder, ['train', '--config-name', 'words', ...endless]);
    const run = await until('there is a run', () => runsOf(workspace.folder)[0]);
    await untilStep(run, 1);
    const { host, boot, pid_namespace, process_start: _, ...rest } = leaseOf(run)!;
    const pidScope = { host, boot, pid_namespace, process_start: startOf(1) };
    rmSync(join(run, 'lease'));
    const forged = { ...rest, pid: 1, token: 'x', ...(form === 'of here' && pidScope) };
    writeFileSync(join(run, 'lease'), JSON.stringify(forged));
    const { code, stderr } = await following;
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(
      `run ${basename(run)}: process 1 has taken over ${join(run, 'lease')}, so this trainer ended: follow the other trainer, or stop it and resume the run`,
    );
    const resumed = await document<{ error: { message: string } }>(workspace.folder, ['resume', basename(run)]);
    expect(resumed.answer.error.message).toMatch(
      / by process 1: .*, or remove .*lease if that process is not a trainer$/,
    );
    rmSync(join(run, 'lease'));
  },
);

test.each([
  ['removed', '', (run: string) => `${join(run, 'lease')} was removed, which ended this trainer: resume the run`],
  [
    'taken by another process',
    'other',
    (run: string) =>
      `process 1 has taken over ${join(run, 'lease')}, so this trainer ended: follow the other trainer, or stop it and resume the run`,
  ],
])('a trainer whose lease is %s ends with one sentence', { timeout: 120_000 }, async (_, other, sentence) => {
  const run = await startDetached(workspace.folder, endless);
  await untilStep(run, 1);
  const lease = leaseOf(run)!;
  const children = childrenOf(lease.pid);
  rmSync(join(run, 'lease'));
  if (other) writeFileSync(join(run, 'lease'), JSON.stringify({ ...lease, pid: 1, token: other }));
  await until('the trainer is gone', () => !isAlive(lease.pid));
  await until('its children are gone', () => !children.some(isAlive));
  expect(existsSync(join(run, 'lease'))).toBe(other !== '');
  const log = join(run, 'trainer.log');
  expect(lastErrors(log), readFileSync(log, 'utf8')).toEqual({
    errors: [`run ${basename(run)}: ${sentence(run)}`],
    native: false,
  });
});
