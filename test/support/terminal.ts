// Runs the real CLI and the trainers that it starts as child processes, and reads their run folders.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { episodeSchema } from '../../extension/run-data/episode';
import { eventSchema } from '../../extension/run-data/run-events';
import { leaseSchema } from '../../extension/run-data/lease-file';
import { metricsLineSchema } from '../../extension/run-data/step-lines';
import { statusSchema } from '../../extension/run-data/run-status-file';
import type { Episode } from '../../extension/run-data/episode';
import type { Lease } from '../../extension/run-data/lease-file';
import type { MetricsLine } from '../../extension/run-data/step-lines';
import type { RunEvent } from '../../extension/run-data/run-events';
import type { RunStatus } from '../../extension/run-data/run-status-file';
import { holderOf } from '../../extension/node/lease-liveness';
import { defaultDependencies } from '../../extension/trainer/store/held-lease';
import { root } from './workspace';

export interface Said {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs `ragen …` in a workspace until it exits. `shell` is a shell command to run before it, such as `ulimit`. */
export async function ragen(workspace: string, args: readonly string[], shell = ''): Promise<Said> {
  const cli = join(root, 'dist/cli.cjs');
  const child = shell
    ? spawn('/bin/bash', ['-c', `${shell}; exec "$0" "$@"`, process.execPath, cli, ...args], { cwd: workspace })
    : spawn(process.execPath, [cli, ...args], { cwd: workspace });
  child.stdin.end(); // end of input ends interactive commands
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', text => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', text => (stderr += text));
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, stdout, stderr };
}

/** Runs `ragen … --json` and returns its JSON document; fails if standard output is anything else. */
export async function document<T = Record<string, unknown>>(
  workspace: string,
  args: readonly string[],
  shell?: string,
) {
  const said = await ragen(workspace, [...args, '--json'], shell);
  if (!/^[^\n]+\n$/.test(said.stdout)) throw new Error(`not one JSON document: ${said.stdout}\n${said.stderr}`);
  return { ...said, answer: JSON.parse(said.stdout) as T };
}

/** Starts a run of the configuration `words`; resolves to its folder when the trainer's socket is open. */
export async function startDetached(workspace: string, overrides: readonly string[] = []): Promise<string> {
  const args = ['train', '--config-name', 'words', '--detach', ...overrides];
  const { code, answer, stderr } = await document<{ folder: string }>(workspace, args);
  if (code !== 0) throw new Error(stderr);
  return answer.folder;
}

/** Folders of a workspace's runs, oldest first. */
export function runsOf(workspace: string): string[] {
  const runs = join(workspace, '.ragen/runs');
  return existsSync(runs) ? readdirSync(runs).map(name => join(runs, name)) : [];
}

export function leaseOf(run: string): Lease | null {
  const file = join(run, 'lease');
  try {
    return leaseSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

export function statusOf(run: string): RunStatus | null {
  const file = join(run, 'status.json');
  return existsSync(file) ? statusSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) : null;
}

/** Polls until `condition` returns a truthy value; fails after half a minute. */
export async function until<T>(what: string, condition: () => T | null | undefined | false): Promise<T> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(5)) {
    const found = condition();
    if (found) return found;
  }
  throw new Error(`timed out waiting for: ${what}`);
}

export const untilStep = (run: string, step: number): Promise<RunStatus> =>
  until(`step ${step}`, () => {
    const status = statusOf(run);
    if (status?.state === 'failed') throw new Error(status.error);
    return status && status.step >= step && status;
  });

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Kills a run's trainer with SIGKILL and waits until it is gone. */
export async function kill(run: string): Promise<void> {
  const { pid } = leaseOf(run)!;
  process.kill(pid, 'SIGKILL');
  await until('the trainer is gone', () => !isAlive(pid) || isZombie(pid));
}

/** Kills the remaining trainers of a workspace, so that no test leaves a process behind. */
export async function killAll(workspace: string): Promise<void> {
  for (const run of runsOf(workspace)) if (holderOf(leaseOf(run), defaultDependencies) === 'held') await kill(run);
}

/** Whether a process has ended, but its parent has not yet asked for its exit code (Linux only). */
export function isZombie(pid: number): boolean {
  try {
    return / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Processes whose parent is `pid` (Linux only; empty elsewhere). */
export function childrenOf(pid: number): number[] {
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(child => {
      try {
        return Number(/^\d+ \(.*\) \w (\d+)/s.exec(readFileSync(`/proc/${child}/stat`, 'utf8'))?.[1]) === pid;
      } catch {
        return false;
      }
    });
}

const lines = (file: string): unknown[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line) as unknown)
    : [];

/** All logs of a run, with every line checked against its schema. */
export function readRun(run: string) {
  const metrics: MetricsLine[] = lines(join(run, 'metrics.jsonl')).map(line => metricsLineSchema.parse(line));
  const events: RunEvent[] = lines(join(run, 'events.jsonl')).map(line => eventSchema.parse(line));
  const files = readdirSync(join(run, 'episodes'))
    .filter(name => /^(step|val)-\d+\.jsonl$/.test(name))
    .sort();
  const episodes: Episode[] = files.flatMap(name =>
    lines(join(run, 'episodes', name)).map(line => episodeSchema.parse(line)),
  );
  const checkpoints = readdirSync(join(run, 'checkpoints')).sort();
  return { metrics, events, episodes, checkpoints, status: statusOf(run) };
}

/** Names of metrics that depend on the clock. */
export const timed = /^(time|wall_s|timing_s\/.*|timing_per_token_ms\/.*|perf\/(?!total_num_tokens).*)$/;

/**
 * Results that do not depend on the clock: metrics without times, and the bytes of the episodes and of the newest
 * checkpoint's weights.
 */
export function results(run: string) {
  const { metrics, checkpoints } = readRun(run);
  const folder = join(run, 'checkpoints', checkpoints.at(-1)!);
  return {
    metrics: metrics.map(line => Object.fromEntries(Object.entries(line).filter(([key]) => !timed.test(key)))),
    episodes: digests(join(run, 'episodes')),
    weights: Object.fromEntries(Object.entries(digests(folder)).filter(([name]) => name !== 'checkpoint.json')),
  };
}

function digests(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter(name => statSync(join(folder, name)).isFile());
  return Object.fromEntries(
    names.sort().map(name => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
}

/** Mounts a separate small file system on a folder; returns false if the machine does not permit mounts. */
export function mountSmall(folder: string, kilobytes: number): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Gives a file system that `mountSmall` mounted another size, in kilobytes. Its files are kept. */
export function resizeMounted(folder: string, kilobytes: number): void {
  execFileSync('mount', ['-o', `remount,size=${kilobytes}k`, folder]);
}

/** Fills a file system that `mountSmall` mounted to its last block with a file named `filler`. */
export function fillMounted(folder: string): void {
  execFileSync('/bin/sh', ['-c', 'cat /dev/zero > "$0/filler" 2> /dev/null || true', folder]);
}

/** Unmounts lazily, because environment processes of a killed trainer may still be exiting. */
export function unmount(folder: string): void {
  execFileSync('umount', ['-l', folder]);
}
