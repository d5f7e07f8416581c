// Training runs in containers that share a workspace folder. The containers are PID namespaces created with unshare(1).
// Clock jumps are simulated by leases with timestamps in the past and in the future. No process takes over or kills a
// run of another namespace, and dead runs are taken over. On one machine, a run counts as dead by the state of its
// process, not by the clock. Requires Linux and permission to create namespaces.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, utimesSync } from 'node:fs';
import { basename, join } from 'node:path';
import { RunReader } from '../../extension/vscode/run-files/run-reader';
import { runPhase } from '../../extension/vscode/runs/run-format';
import { readLease } from '../../extension/trainer/store/held-lease';
import {
  childrenOf,
  document,
  isAlive,
  kill,
  killAll,
  leaseOf,
  ragen,
  runsOf,
  startDetached,
  statusOf,
  until,
  untilStep,
} from '../support/terminal';
import { makeWorkspace, root } from '../support/workspace';
import { scaled } from './scale';
import type { TortureScale } from './scale';

const endless = ['trainer.total_training_steps=100000', 'trainer.save_freq=1', 'trainer.test_freq=-1'];
const day = 86_400;

/**
 * The command that starts a process in a separate PID namespace with its own /proc; undefined if namespaces are not
 * permitted.
 */
export function namespaceCommand(): string[] | undefined {
  const ways = [[], ['--user', '--map-root-user']].map(more => ['unshare', ...more, '--pid', '--fork', '--mount-proc']);
  return ways.find(([command, ...args]) => spawnSync(command, [...args, '--kill-child', 'true']).status === 0);
}

/** The part `namespaces` of `npm run torture`. */
export async function namespaces({ scale, say }: TortureScale): Promise<void> {
  const command = namespaceCommand();
  if (!command)
    return say('PID namespaces are not permitted here (unshare --pid --fork --mount-proc): nothing was tested');
  const rounds = scaled(5, { scale });
  for (let round = 0; round < rounds; round++) await sharedFolder(command);
  say(`${rounds} × 2 namespaces with one run each in one folder: no run was taken over or killed by another`);
  for (let round = 0; round < rounds; round++) await jumpingClocks();
  say(`${rounds} × 4 clock jumps by a day: runs were stopped and resumed as without jumps`);
}

function holds(held: unknown, sentence: string): asserts held {
  if (!held) throw new Error(`namespaces: ${sentence}`);
}

/**
 * Tests one run inside a namespace and one outside. Each run detects that the other is alive and does not affect it.
 * After the namespace has ended, the run inside it is resumed.
 * @throws Error with the guarantee that was broken
 */
export async function sharedFolder(command: readonly string[]): Promise<void> {
  const workspace = makeWorkspace();
  let container: ChildProcess | undefined;
  try {
    container = inside(
      command,
      `${cli(['train', '--config-name', 'words', '--detach', ...endless])} && exec sleep 1000`,
    );
    const there = await until('the run in the container exists', () => runsOf(workspace.folder)[0]);
    await untilStep(there, 1);
    const trainer = await until('the trainer in the container is visible here', () => trainerOf(there));
    const [environment] = childrenOf(trainer);
    holds(leaseOf(there)!.pid !== trainer, 'the container has no separate process ids');

    holds(readLease(there)?.live, 'outside the container, its run is reported as dead');
    const reader = new RunReader(there);
    await reader.refresh();
    holds(runPhase(reader.summary!) === 'running', 'the editor shows a running run of a container as interrupted');
    const taken = await ragen(workspace.folder, ['resume', basename(there)]);
    holds(
      /already being trained by process \d+ of .+ \(on another machine or in another container/.test(taken.stderr),
      `resume prints ${taken.stderr}`,
    );

    // Each starting run searches for abandoned processes. One run starts here, one in a namespace with its own /proc,
    // and one in a namespace that shares this /proc.
    const here = await startDetached(workspace.folder, endless);
    await untilStep(here, 1);
    const own = childrenOf(leaseOf(here)!.pid);
    for (const way of [command, command.filter(word => word !== '--mount-proc')]) {
      const once = inside(way, cli(['train', '--config-name', 'words', 'trainer.total_training_steps=1']));
      const [code] = await new Promise<unknown[]>(resolve => once.once('close', (...end) => resolve(end)));
      holds(code === 0, `a run under ${way.join(' ')} ended with ${String(code)}`);
      const refused = inside(way, `! ${cli(['resume', basename(here)])}`);
      const [end] = await new Promise<unknown[]>(resolve => refused.once('close', (...each) => resolve(each)));
      holds(end === 0, 'a run whose trainer is alive outside was resumed in a container');
    }
    for (const pid of [environment, ...own])
      holds(isAlive(pid), 'an environment process of another namespace was killed');
    for (const run of [there, here]) await untilStep(run, statusOf(run)!.step + 1);

    container.kill('SIGKILL');
    await until('the container is gone', () => !isAlive(trainer));
    await document(workspace.folder, ['resume', basename(there), '--detach']);
    holds(readLease(there)?.live, 'a run whose container has ended was not resumed');
  } finally {
    container?.kill('SIGKILL');
    await killAll(workspace.folder);
    workspace.remove();
  }

  function inside([program, ...args]: readonly string[], line: string): ChildProcess {
    return spawn(program, [...args, '--kill-child', '/bin/sh', '-c', line], {
      cwd: workspace.folder,
      stdio: 'ignore',
    });
  }
}

const cli = (args: readonly string[]): string =>
  [process.execPath, join(root, 'dist/cli.cjs'), ...args].map(word => `'${word}'`).join(' ');

/** The pid, in this namespace, of a run's trainer. */
const trainerOf = (run: string): number | undefined =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .find(pid => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return line[1]?.endsWith('trainer.cjs') && line.includes(run);
      } catch {
        return false;
      }
    });

/**
 * A run whose lease is dated one day in the past or future can be stopped while its trainer is alive, and resumed after
 * its trainer was killed.
 * @throws Error with the guarantee that was broken
 */
export async function jumpingClocks(): Promise<void> {
  const workspace = makeWorkspace();
  try {
    const run = await startDetached(workspace.folder, endless);
    await untilStep(run, 1);
    for (const jump of [-day, day]) {
      await kill(run);
      touch(run, jump);
      holds(!readLease(run)?.live, `a dead trainer counts as living by a clock that jumped by ${jump} s`);
      const { code, stderr } = await document(workspace.folder, ['resume', basename(run), '--detach']);
      holds(code === 0, `a resume after a jump of ${jump} s is refused: ${stderr}`);
      touch(run, jump); // lasts until the trainer renews the lease
      holds(readLease(run)?.live, `a living trainer counts as dead by a clock that jumped by ${jump} s`);
      await untilStep(run, statusOf(run)!.step + 1);
    }
    touch(run, -day);
    const { code, stderr } = await document(workspace.folder, ['stop', basename(run)]);
    holds(code === 0 && statusOf(run)!.state === 'stopped', `a stop after a jump is refused: ${stderr}`);
  } finally {
    await killAll(workspace.folder);
    workspace.remove();
  }
}

function touch(run: string, seconds: number): void {
  const time = Date.now() / 1000 + seconds;
  utimesSync(join(run, 'lease'), time, time);
}
