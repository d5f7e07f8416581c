// Supervises one replaceable runtime of environment code: a thread (environments/runtime/threads/thread.ts) or a
// process (environments/client/process-runtime.ts). If the runtime ends, a new one is started and the live episodes are
// replayed. Calls without a result are repeated, so that each is answered exactly once. The culprit of an ending is the
// episode that the runtime names. If it names none, the calls (or replays) are repeated one at a time with nothing else
// under way: then it is the episode whose call is. Only the culprit fails. Calls of one episode run in order;
// everything else overlaps.
import { KeyedQueue } from '../../common/keyed-queue';

/**
 * Who ended a runtime: an episode whose call was under way; `other`: a call of another job; `unknown`: one of the calls
 * under way; `nobody`: no call was running; `everybody`: the runtime cannot be started now, so every call fails.
 */
export type Blame = { episode: string } | 'other' | 'unknown' | 'nobody' | 'everybody';

/** The end of a runtime before it had answered, or the refusal to start one. */
export interface Ending<Cause> {
  blame: Blame;
  cause: Cause;
}

/** Code to load into a new runtime, and the episodes to replay on it. */
export interface Replay<Cause> {
  /** Loads the code; `alone` as in `Runtime.replay`. Absent if `start` has loaded it. */
  load?(alone: boolean): Promise<Ending<Cause> | undefined>;
  episodes: readonly string[];
}

/** The thread or process that is supervised. */
export interface Runtime<Cause> {
  /** Whether it runs. */
  readonly running: boolean;
  /** Whether calls are repeated together once, before they are repeated one at a time. */
  readonly repeatsTogether: boolean;
  /** Starts a new runtime in place of one that has ended; returns an ending if it cannot be started now. */
  start(): Promise<Ending<Cause> | undefined>;
  /** What a new runtime must load and replay, in order, except for episodes in `leaving`. */
  replays(leaving: ReadonlySet<string>): readonly Replay<Cause>[];
  /** Replays episodes to their current state. `alone`: nothing else is under way, and this is a repetition. */
  replay(episodes: readonly string[], alone: boolean): Promise<Ending<Cause> | undefined>;
  /** Makes an episode whose replay ended the runtime a failed one. */
  lose(episode: string, cause: Cause): void;
  /** Ends a runtime that was not rebuilt completely. */
  discard(): void;
  /** Called before calls are repeated one at a time. */
  separate?(): void;
}

/** The results of some episodes' calls. */
export type Results<Result> = readonly (readonly [episode: string, result: Result])[];

/** Calls of several episodes, one per episode. */
export interface Job<Result, Cause> {
  /**
   * Sends the calls of these episodes and reports each result once; resolves when all are reported, or with the ending
   * of the runtime. `report` returns the episodes that had no result before.
   */
  send(
    episodes: readonly string[],
    alone: boolean,
    report: (results: Results<Result>) => string[],
  ): Promise<Ending<Cause> | undefined>;
  /** The result of a call that ended the runtime, or for which none can be started. */
  fail(episode: string, ending: Ending<Cause>): Result;
  /** Receives results as soon as they are there. */
  onResults?(results: Results<Result>): void;
  /** Awaited before the first call, once earlier calls of the episodes are done. */
  after?(): Promise<unknown>;
}

/** How often a runtime may end without a running call until all calls under way fail. */
const mostUnattributed = 2;

const none: ReadonlySet<string> = new Set();

export class Supervisor<Cause> {
  /** Queues the calls of each episode. */
  readonly queue = new KeyedQueue();
  private rebuilding: Promise<Ending<Cause> | undefined> | undefined;
  private exclusiveJob: Promise<unknown> | undefined;

  constructor(private readonly runtime: Runtime<Cause>) {}

  /** Whether a runtime is being started and rebuilt. */
  get starting(): boolean {
    return this.rebuilding !== undefined;
  }

  /** Whether a job runs that nothing else may overlap. */
  get exclusive(): boolean {
    return this.exclusiveJob !== undefined;
  }

  /**
   * Ensures a running runtime that holds all live episodes, except for those in `leaving`. Returns an ending if none
   * can be started now.
   */
  ready(leaving: ReadonlySet<string> = none): Promise<Ending<Cause> | undefined> {
    if (this.runtime.running && !this.rebuilding) return Promise.resolve(undefined);
    return (this.rebuilding ??= this.rebuild(leaving).finally(() => (this.rebuilding = undefined)));
  }

  /** Performs a job, after earlier calls of its episodes. Returns the result of each episode's call. */
  run<Result>(episodes: readonly string[], job: Job<Result, Cause>): Promise<Map<string, Result>> {
    return this.queue.acquire(episodes, async release => {
      if (job.after) await job.after();
      const calls = new Calls(episodes, job, release);
      if (this.exclusive || !(await this.perform(calls, false)))
        await this.exclusively(() => this.perform(calls, true));
      return calls.results;
    });
  }

  /** The result of `attempt`, repeated once with nothing else under way if the runtime ended (undefined). */
  async twice<T>(attempt: () => Promise<T | undefined>): Promise<T | undefined> {
    const first = this.exclusive ? undefined : await attempt();
    return first ?? this.exclusively(attempt);
  }

  /** Runs `job` after earlier exclusive jobs; no other call is sent meanwhile. */
  exclusively<T>(job: () => Promise<T>): Promise<T> {
    const work = (this.exclusiveJob ?? Promise.resolve()).then(job);
    const mine: Promise<unknown> = work
      .catch(() => undefined)
      .then(() => {
        if (this.exclusiveJob === mine) this.exclusiveJob = undefined;
      });
    this.exclusiveJob = mine;
    return work;
  }

  /** Sends the open calls until each has a result; false if they must be repeated exclusively. */
  private async perform<Result>(calls: Calls<Result, Cause>, exclusive: boolean): Promise<boolean> {
    for (let open = calls.open; open.length > 0; open = calls.open) {
      const sent = calls.alone ? open.slice(0, 1) : open;
      const ending = await calls.send(sent);
      if (!ending) continue;
      const { blame } = ending;
      const culprit = culpritOf(blame, sent, calls.alone);
      if (blame === 'everybody' || (blame === 'nobody' && ++calls.unattributed > mostUnattributed))
        calls.fail(calls.open, ending);
      else if (culprit !== undefined) calls.fail([culprit], ending);
      else if (blame !== 'other') {
        if (!calls.alone && (exclusive || !this.runtime.repeatsTogether)) {
          calls.alone = true;
          this.runtime.separate?.();
        }
        if (!exclusive) return false;
      }
    }
    return true;
  }

  private async rebuild(leaving: ReadonlySet<string>): Promise<Ending<Cause> | undefined> {
    try {
      for (let alone = false; ;) {
        const ended = await this.replayAll(leaving, alone);
        if (!ended) return undefined;
        const { ending, sent } = ended;
        const { blame, cause } = ending;
        const culprit = culpritOf(blame, sent, alone);
        if (culprit !== undefined) this.runtime.lose(culprit, cause);
        else if (blame === 'everybody' || (alone && blame !== 'other')) {
          this.runtime.discard();
          return { blame: 'everybody', cause };
        } else alone ||= blame !== 'other';
      }
    } catch (error) {
      this.runtime.discard();
      throw error;
    }
  }

  /** Starts a runtime and replays the episodes; returns its ending and what was being replayed. */
  private async replayAll(
    leaving: ReadonlySet<string>,
    alone: boolean,
  ): Promise<{ ending: Ending<Cause>; sent: readonly string[] } | undefined> {
    const refusal = await this.runtime.start();
    if (refusal) return { ending: refusal, sent: [] };
    for (const { load, episodes } of this.runtime.replays(leaving)) {
      const ending = await load?.(alone);
      if (ending) return { ending, sent: [] };
      for (const sent of alone ? episodes.map(episode => [episode]) : [episodes]) {
        const ending = sent.length > 0 ? await this.runtime.replay(sent, alone) : undefined;
        if (ending) return { ending, sent };
      }
    }
    return undefined;
  }
}

/** The episode at fault, if it is known. */
function culpritOf(blame: Blame, sent: readonly string[], alone: boolean): string | undefined {
  if (typeof blame === 'object') return blame.episode;
  return blame === 'unknown' && alone ? sent.at(0) : undefined;
}

/** The calls of a job, and their results so far. */
class Calls<Result, Cause> {
  readonly results = new Map<string, Result>();
  /** Whether the calls are repeated one at a time. */
  alone = false;
  /** Number of endings without a running call. */
  unattributed = 0;

  constructor(
    private readonly episodes: readonly string[],
    private readonly job: Job<Result, Cause>,
    private readonly release: (episode: string) => void,
  ) {}

  /** Episodes whose calls have no result yet. */
  get open(): string[] {
    return this.episodes.filter(episode => !this.results.has(episode));
  }

  send(episodes: readonly string[]): Promise<Ending<Cause> | undefined> {
    return this.job.send(episodes, this.alone, results => this.settle(results));
  }

  fail(episodes: readonly string[], ending: Ending<Cause>): void {
    const open = episodes.filter(episode => !this.results.has(episode));
    if (open.length > 0) this.settle(open.map(episode => [episode, this.job.fail(episode, ending)]));
  }

  private settle(results: Results<Result>): string[] {
    const fresh = results.filter(([episode]) => !this.results.has(episode));
    for (const [episode, result] of fresh) {
      this.results.set(episode, result);
      this.release(episode);
    }
    this.job.onResults?.(fresh);
    return fresh.map(([episode]) => episode);
  }
}
