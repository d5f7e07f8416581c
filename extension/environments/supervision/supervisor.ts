// Supervises a runtime, which executes environment code. The runtime is a thread
// (environments/runtime/threads/thread.ts) or a process (environments/client/process-runtime.ts) that can be replaced
// by a new one. If the runtime ends, the supervisor starts a new runtime, replays the live episodes and repeats the
// calls that have no result. Each call is answered exactly once. If a call ended the runtime, only its episode fails.
// The runtime may name this episode. If it names no episode, the calls or replays are repeated one at a time. If a
// runtime then ends again, the episode whose call or replay was running is at fault. Calls of one episode run in order;
// calls of different episodes overlap. trainer/rollout/agent-proxy.ts decides whether a run pauses because many
// episodes fail.
import { KeyedQueue } from '../../common/keyed-queue';

/**
 * The cause of a runtime's end. `{ episode }`: the call of this episode was running. `other`: a call of another job was
 * running. `unknown`: one of the running calls is the cause, but it is not known which. `nobody`: no call was running.
 * `everybody`: the runtime cannot be started at present, so all calls fail.
 */
export type Blame = { episode: string } | 'other' | 'unknown' | 'nobody' | 'everybody';

/** The end of a runtime before it had answered all calls, or the reason why no runtime can be started. */
export interface Ending<Cause> {
  blame: Blame;
  cause: Cause;
}

/** Code that a new runtime must load, and the episodes to replay with this code. */
export interface Replay<Cause> {
  /**
   * Loads the code; `alone` has the same meaning as in `Runtime.replay`. A runtime whose `start` loads the code has no
   * method `load`.
   */
  load?(alone: boolean): Promise<Ending<Cause> | undefined>;
  episodes: readonly string[];
}

/** A thread or process under supervision. */
export interface Runtime<Cause> {
  /** Whether the thread or process exists and has not ended. */
  readonly running: boolean;
  /**
   * If true, interrupted calls are first repeated together, and one at a time only after the runtime has ended again.
   * If false, interrupted calls are repeated one at a time from the start.
   */
  readonly repeatsTogether: boolean;
  /**
   * Starts a new runtime after the previous runtime has ended. If no runtime can be started at present, returns the
   * reason.
   */
  start(): Promise<Ending<Cause> | undefined>;
  /**
   * The code and episodes that a new runtime must load and replay, in order.
   * @param leaving episodes that are not replayed
   */
  replays(leaving: ReadonlySet<string>): readonly Replay<Cause>[];
  /**
   * Replays episodes to their current state. If the runtime ends during the replay, returns the reason.
   * @param alone true if an earlier replay ended the runtime, so that episodes are now replayed one at a time
   */
  replay(episodes: readonly string[], alone: boolean): Promise<Ending<Cause> | undefined>;
  /** Marks an episode as failed because its replay ended the runtime. */
  lose(episode: string, cause: Cause): void;
  /** Ends a runtime in which not all episodes could be rebuilt. */
  discard(): void;
  /** Called before calls are repeated one at a time. */
  separate?(): void;
}

/** Results of calls, by episode. */
export type Results<Result> = readonly (readonly [episode: string, result: Result])[];

/** Calls of several episodes, at most one per episode. */
export interface Job<Result, Cause> {
  /**
   * Sends the calls of these episodes. Resolves when all results have been reported, or with the reason if the runtime
   * ended earlier.
   * @param alone whether the calls are repeated one at a time
   * @param report must be called with each result; it returns the episodes for which it had not received a result
   * before
   */
  send(
    episodes: readonly string[],
    alone: boolean,
    report: (results: Results<Result>) => string[],
  ): Promise<Ending<Cause> | undefined>;
  /** Returns the result of a call that failed, because it ended the runtime or because no runtime can be started. */
  fail(episode: string, ending: Ending<Cause>): Result;
  /** Receives results as soon as they are ready. */
  onResults?(results: Results<Result>): void;
  /**
   * Called once, after all earlier calls of the same episodes have ended. The calls of this job are sent when the
   * returned promise resolves.
   */
  after?(): Promise<unknown>;
}

/**
 * Maximum number of times that a runtime may end while no call is running. At the next such end, all open calls of the
 * job fail.
 */
const mostUnattributed = 2;

const none: ReadonlySet<string> = new Set();

export class Supervisor<Cause> {
  /** Makes the calls of each episode run in order. */
  readonly queue = new KeyedQueue();
  private rebuilding: Promise<Ending<Cause> | undefined> | undefined;
  private exclusiveJob: Promise<unknown> | undefined;

  constructor(private readonly runtime: Runtime<Cause>) {}

  /** Whether a runtime is being started, or episodes are being replayed in it. */
  get starting(): boolean {
    return this.rebuilding !== undefined;
  }

  /** Whether an exclusive job is running; no other call may be sent during this job. */
  get exclusive(): boolean {
    return this.exclusiveJob !== undefined;
  }

  /**
   * Waits until a runtime is running and has replayed all live episodes. If no runtime can be started at present,
   * returns the reason.
   * @param leaving episodes that are not replayed
   */
  ready(leaving: ReadonlySet<string> = none): Promise<Ending<Cause> | undefined> {
    if (this.runtime.running && !this.rebuilding) return Promise.resolve(undefined);
    return (this.rebuilding ??= this.rebuild(leaving).finally(() => (this.rebuilding = undefined)));
  }

  /** Performs a job when all earlier calls of its episodes have ended. Returns the result of each episode's call. */
  run<Result>(episodes: readonly string[], job: Job<Result, Cause>): Promise<Map<string, Result>> {
    return this.queue.acquire(episodes, async release => {
      if (job.after) await job.after();
      const calls = new Calls(episodes, job, release);
      if (this.exclusive || !(await this.perform(calls, false)))
        await this.exclusively(() => this.perform(calls, true));
      return calls.results;
    });
  }

  /**
   * Returns the result of `attempt`. If this result is undefined because the runtime ended, calls `attempt` once more
   * as an exclusive job.
   */
  async twice<T>(attempt: () => Promise<T | undefined>): Promise<T | undefined> {
    const first = this.exclusive ? undefined : await attempt();
    return first ?? this.exclusively(attempt);
  }

  /** Runs an exclusive job after earlier exclusive jobs. No other call is sent while it runs. */
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

  /**
   * Sends the calls that have no result. If the runtime ends, sends the remaining calls again, until each call has a
   * result. Returns false if the remaining calls must be repeated by an exclusive job.
   */
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

  /**
   * Starts a runtime and replays the episodes. If the runtime ends during the replay, returns the reason and the
   * episodes that were being replayed.
   */
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

/** Returns the episode at fault; undefined if this episode is unknown, or if no episode of this job is at fault. */
function culpritOf(blame: Blame, sent: readonly string[], alone: boolean): string | undefined {
  if (typeof blame === 'object') return blame.episode;
  return blame === 'unknown' && alone ? sent.at(0) : undefined;
}

/** The calls of a job, and their results so far. */
class Calls<Result, Cause> {
  readonly results = new Map<string, Result>();
  /** Whether the calls are sent one at a time. */
  alone = false;
  /** Number of times that the runtime has ended while no call was running. */
  unattributed = 0;

  constructor(
    private readonly episodes: readonly string[],
    private readonly job: Job<Result, Cause>,
    private readonly release: (episode: string) => void,
  ) {}

  /** Episodes whose calls have no result. */
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
