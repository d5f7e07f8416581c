// Writes `.ragen/sweeps/<id>/sweep.json` while a sweep runs (run-data/sweep-file.ts). One process runs a sweep at a time:
// opening the index of a sweep that another process runs is an error. A failed write does not end the sweep, because the
// run folders hold everything that is needed to continue.
import { join, resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { makeFolder, replaceFile } from '../../node/files';
import { isRunnerAlive, thisRunner } from '../../node/sweep-runner';
import { sweepFiles, sweepFileSchema, sweepsFolder, type PointStop, type SweepFile } from '../../run-data/sweep-file';
import type { RunFolder } from '../../trainer/store/run-folder';
import { json, readJson } from '../../trainer/store/run-documents';
import type { SweepPlan } from './sweep-plan';

/** Returns the folder of a sweep. */
export const sweepFolder = (workspace: string, id: string): string => resolve(workspace, sweepsFolder, id);

export interface SweepLimits {
  jobs: number;
  retries: number;
}

export class SweepIndex {
  /** The write in progress and the writes that wait for it. */
  private writing: Promise<void> = Promise.resolve();
  private isQueued = false;

  private constructor(
    private readonly folder: string,
    private readonly content: SweepFile,
    private readonly note: (sentence: string) => void,
  ) {}

  /**
   * Opens the index for a plan and writes it. Numbers of attempts are kept from an earlier index. `note` receives a
   * sentence if the index cannot be written.
   * @throws UserError if another process runs the sweep
   */
  static async open(
    plan: SweepPlan,
    runs: ReadonlyMap<number, RunFolder>,
    { jobs, retries }: SweepLimits,
    workspace: string,
    note: (sentence: string) => void,
  ): Promise<SweepIndex> {
    const folder = sweepFolder(workspace, plan.id);
    const earlier = earlierIndex(folder);
    if (earlier && isRunnerAlive(earlier.runner))
      throw new UserError(
        `sweep ${plan.id}: process ${earlier.runner!.pid} runs this sweep already: wait for its end, or stop it with Ctrl+C in its terminal`,
      );
    const attempts = new Map(earlier?.members.map(member => [member.run, member.attempts]));
    const index = new SweepIndex(
      folder,
      {
        ...{ schema: 1, id: plan.id, file: plan.file, overrides: plan.overrides, jobs, retries, updated: '' },
        runner: thisRunner(),
        halving: plan.halving,
        points: plan.points.map(point => ({ ...point, stopped: null })),
        members: plan.members.map(({ point, seed }, m) => {
          const run = runs.get(m)?.id ?? null;
          return { point, seed, run, attempts: (run !== null && attempts.get(run)) || 0 };
        }),
      },
      note,
    );
    await makeFolder(folder);
    index.write();
    return index;
  }

  /** Records that a run was started or resumed. */
  started(m: number, run: string): void {
    const member = this.content.members[m];
    member.run = run;
    member.attempts++;
    delete member.problem;
    this.write();
  }

  /** Records the folder of a run, without counting an attempt. */
  joined(m: number, run: string): void {
    this.content.members[m].run = run;
    this.write();
  }

  /** Records why a run could not be started, or how its last attempt failed. */
  failed(m: number, problem: string): void {
    this.content.members[m].problem = problem;
    this.write();
  }

  /** Records the points that were stopped early. */
  stopped(stops: ReadonlyMap<number, PointStop>): void {
    this.content.points.forEach((point, p) => (point.stopped = stops.get(p) ?? null));
    this.write();
  }

  /** Records that no process runs the sweep any more, and resolves when the index is written. */
  async close(): Promise<void> {
    this.content.runner = null;
    this.write();
    await this.writing;
  }

  /** Queues a write of the current content; a write that waits already will include it. */
  private write(): void {
    if (this.isQueued) return;
    this.isQueued = true;
    this.writing = this.writing.then(async () => {
      this.isQueued = false;
      try {
        const updated = new Date().toISOString();
        await replaceFile(join(this.folder, sweepFiles.index), json({ ...this.content, updated }));
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        this.note(error.message);
      }
    });
  }
}

/** Returns the index that an earlier process wrote; null if there is none or it is damaged. */
function earlierIndex(folder: string): SweepFile | null {
  try {
    return readJson(folder, sweepFiles.index, sweepFileSchema);
  } catch {
    return null;
  }
}
