// A long run with the smallest model. After warm-up, the memory of each process must not grow, and the size of all
// output except results must stay bounded. Memory is the resident set size, sampled twice per second. The samples of
// the first quarter are dropped. Growth is the median of the last tenth of the remaining samples relative to the median
// of their first tenth.
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { logLimits } from '../../extension/trainer/store/rotate-log';
import { childrenOf, isAlive, leaseOf, startDetached, statusOf } from '../support/terminal';
import { makeWorkspace, wordsEnvironment } from '../support/workspace';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Number of steps at full scale; `mostGrowth` is the maximum relative growth of memory. */
const wholeSteps = 2000;
export const mostGrowth = 0.05;
const everyMs = 500;

/** One process during a run, with its memory samples in bytes. */
export interface Course {
  name: string;
  samples: number[];
}

/** Medians of the first and last tenth of the samples after the first quarter, and the relative growth. */
export function growthOf(samples: readonly number[]): { from: number; to: number; growth: number } {
  const settled = samples.slice(Math.floor(samples.length / 4));
  const tenth = Math.max(1, Math.floor(settled.length / 10));
  const from = median(settled.slice(0, tenth));
  const to = median(settled.slice(-tenth));
  return { from, to, growth: to / from - 1 };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

export interface SoakReport {
  steps: number;
  seconds: number;
  courses: Course[];
  /** Maximum size of the logs, and total bytes written by the run. */
  logs: number;
  folder: number;
}

/**
 * Trains for a number of steps, with an environment that prints, with checkpoints and with validations, and samples
 * memory. The environment is edited only in the first quarter, because a separate benchmark measures the memory growth
 * over edits (docs/PERFORMANCE.md).
 */
export async function soakRun(
  steps: number,
  say: (line: string) => void,
  overrides: readonly string[] = [],
): Promise<SoakReport> {
  const workspace = makeWorkspace();
  const environment = 'environments/words.ts';
  const printing = (edit: number) => wordsEnvironment(`console.log('edit ${edit}', 'word '.repeat(200));`);
  workspace.write(environment, printing(0));
  let pid: number | undefined;
  try {
    const run = await startDetached(workspace.folder, [
      ...[
        `trainer.total_training_steps=${steps}`,
        'trainer.save_freq=50',
        'trainer.test_freq=100',
        'workbench.early_stops=[]',
      ],
      ...['actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0', 'actor_rollout_ref.actor.optim.lr=1e-5'],
      ...overrides,
    ]);
    pid = leaseOf(run)!.pid;
    const courses = new Map<number, Course>();
    const from = performance.now();
    let [logs, reported, edits] = [0, 0, 0];
    for (; ['starting', 'running'].includes(statusOf(run)?.state ?? ''); await sleep(everyMs)) {
      for (const one of [pid, ...childrenOf(pid)]) {
        const bytes = residentBytes(one);
        const course = courses.get(one) ?? {
          name: one === pid ? 'trainer, with its engine' : `environment process ${one}`,
          samples: [],
        };
        if (bytes > 0) courses.set(one, course).get(one)!.samples.push(bytes);
      }
      logs = Math.max(
        logs,
        bytesOf(run, name => name.startsWith('trainer.log')),
      );
      const { step } = statusOf(run)!;
      if (step >= reported + steps / 20) {
        reported = step;
        const held = [...courses.values()].map(({ name, samples }) => `${name} ${mebibytes(samples.at(-1)!)} MiB`);
        say(`step ${step}, ${Math.round((performance.now() - from) / 1000)} s: ${held.join(', ')}`);
      }
      if (edits < 5 && step >= (edits + 1) * (steps / 24)) workspace.write(environment, printing(++edits));
    }
    const status = statusOf(run)!;
    if (status.state !== 'finished')
      throw new Error(`the run is ${status.state} at step ${status.step}: ${status.error}`);
    const seconds = Math.round((performance.now() - from) / 1000);
    return { steps: status.step, seconds, courses: [...courses.values()], logs, folder: bytesOf(run, () => true) };
  } finally {
    if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL');
    workspace.remove();
  }
}

/** The part `soak` of `npm run torture`. @throws if memory or logs grow beyond their limits */
export async function soak(scale: TortureScale): Promise<void> {
  const report = await soakRun(scaled(wholeSteps, scale), scale.say);
  const rows = report.courses.map(({ name, samples }) => {
    const { from, to, growth } = growthOf(samples);
    return [name, samples.length, mebibytes(from), mebibytes(to), `${(100 * growth).toFixed(1)} %`];
  });
  console.log(table(['process', 'samples', 'MiB after warm-up', 'MiB at the end', 'growth'], rows));
  console.log(
    `${report.steps} steps in ${report.seconds} s; maximum size of trainer.log with its older parts: ${mebibytes(report.logs)} MiB, of the run folder: ${mebibytes(report.folder)} MiB`,
  );
  const grown = report.courses.filter(({ samples }) => growthOf(samples).growth >= mostGrowth);
  if (grown.length > 0)
    throw new Error(`memory grew by ${mostGrowth * 100} % or more: ${grown.map(({ name }) => name).join(', ')}`);
  const bound = (logLimits.kept + 1) * logLimits.mostBytes + 4 * 2 ** 20;
  if (report.logs > bound) throw new Error(`the logs have ${report.logs} bytes`);
}

/** Resident bytes of a process; 0 if the process has ended. */
function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

const mebibytes = (bytes: number): number => Math.round(bytes / 2 ** 20);

/** Total bytes of the matching files in a folder and its subfolders. */
function bytesOf(folder: string, counts: (name: string) => boolean): number {
  if (!existsSync(folder)) return 0;
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + bytesOf(path, counts);
    return counts(entry.name) ? sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : sum;
  }, 0);
}
