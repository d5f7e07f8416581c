// Watches the Ray job of a run for a CLI command that follows the run. The job's state is polled in the background; the
// run itself is followed through its folder. While Ray cannot be reached, only the folder shows what the run does.
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../../common/user-error';
import { isOver, type RayJob } from '../../ray/ray-wire';
import type { RayJobs } from '../../ray/ray-jobs';
import { isUnended } from '../../run-data/run-progress';
import { LeaseWatch } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import type { TrainerExit, TrainerProcess } from '../run-lifecycle/trainer-exit';
import { cancelJob, isQueued, jobEnd, settleRun } from './settled-run';

/** Milliseconds between requests for the job's state, and milliseconds between reads of the run folder. */
const [jobPollMs, folderPollMs] = [2000, 250];
/** If a job has not begun after this many milliseconds, it is reported as waiting for free resources. */
const quickMs = 5000;
/** Maximum milliseconds to wait for Ray to notice that a job has ended. */
const endMs = 15_000;

export class RunJob implements TrainerProcess {
  readonly pid = undefined;
  /** The job as last read; undefined before the first answer, null if Ray does not know it. */
  private job: RayJob | null | undefined;
  private polling: Promise<void> | undefined;
  private problem: string | undefined;

  constructor(
    private readonly folder: RunFolder,
    private readonly jobs: RayJobs,
    readonly id: string,
    private readonly note: (sentence: string) => void,
  ) {}

  ended(): TrainerExit | null {
    return this.isOver ? { code: this.job?.driver_exit_code ?? null, signal: null } : null;
  }

  /** Whether Ray has reported the job's end, or does not know the job. */
  private get isOver(): boolean {
    return this.job === null || (this.job !== undefined && isOver(this.job));
  }

  /**
   * Whether the run has ended. If the trainer seems to have abandoned its lease, the run still counts as running while
   * its job runs, because a shared file system may show the trainer's updates of the lease late.
   */
  runOver(lease: ReturnType<LeaseWatch['look']>): boolean {
    this.poll();
    if (lease !== 'gone') return false;
    const runs = this.problem === undefined && this.job?.status === 'RUNNING';
    return !runs || !isUnended(this.folder.readStatus()?.state ?? 'starting');
  }

  /**
   * Waits until the trainer serves the run. Resolves to false if the job ends before the trainer serves the run; the
   * run's status then states the reason. If `halt` is aborted, the job is stopped.
   */
  async untilServed(halt: AbortSignal): Promise<boolean> {
    const lease = new LeaseWatch(this.folder.path);
    const quickStart = performance.now() + quickMs;
    let isShown = false;
    for (;;) {
      if (!isQueued(this.folder) && lease.look() !== 'gone') return true;
      this.poll();
      if (!isShown && this.job?.status === 'PENDING' && performance.now() > quickStart) {
        isShown = true;
        this.note(`Ray job ${this.id} is queued until resources are free (interrupt to cancel it)`);
      }
      if (halt.aborted) return (await cancelJob(this.folder, this.jobs, this.id)) === null;
      if (this.isOver) {
        await settleRun(this.folder, this.jobs, this.job ?? null);
        if (!isQueued(this.folder)) return false;
      }
      await sleep(folderPollMs);
    }
  }

  /** Explains why the run ended without a final status. */
  async explain(): Promise<string> {
    const deadline = performance.now() + endMs;
    while (!this.isOver && this.problem === undefined && performance.now() < deadline) {
      this.poll();
      await sleep(folderPollMs);
    }
    const { id: run } = this.folder;
    const resume = `resume it with ragen resume ${run} --on ${this.jobs.url}`;
    if (this.problem !== undefined) return `run ${run}: its trainer has ended, and ${this.problem}; then ${resume}`;
    if (!this.isOver) return `run ${run}: its trainer has ended, but Ray job ${this.id} has not: ${resume}`;
    return `run ${run}: ${await jobEnd(this.jobs, this.id, this.job ?? null)}\n${resume}`;
  }

  /** Starts a request for the job's state, unless one is in progress or the job has ended. */
  private poll(): void {
    if (this.polling || this.isOver) return;
    this.polling = this.read().finally(() => {
      void sleep(jobPollMs, undefined, { ref: false }).then(() => (this.polling = undefined));
    });
  }

  private async read(): Promise<void> {
    try {
      this.job = await this.jobs.get(this.id);
      this.problem = undefined;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      if (this.problem === undefined) this.note(`${error.message} (the run is followed through its folder)`);
      this.problem = error.message;
    }
  }
}
