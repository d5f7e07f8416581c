// One loaded environment with its supervised worker thread (environments/supervision/supervisor.ts). If a call times
// out or the worker exits, only the call's episode fails. A new worker is started, and the other live episodes are
// replayed in it; the trainer receives no error for them. Batches may overlap, and calls that return promises may
// overlap. Items of one episode run in order.
import type { EnvironmentFailure } from '../../../protocol/environment-link';
import { Supervisor, type Job, type Results } from '../../supervision/supervisor';
import type { Bundle } from '../build/build';
import { ThreadRuntime, type ThreadOptions } from './thread-runtime';
import type { WorkerEnding } from './worker-handle';
import type { CoveredRange, Description, Fault, WorkItem, WorkResult } from './worker-messages';

export type ThreadItem = Exclude<WorkItem, { do: 'load' | 'replay' }>;
export interface ThreadResult extends Omit<WorkResult, 'fault'> {
  failure?: EnvironmentFailure;
}
/** Called with the result of the item at `index` of the batch. */
export type ThreadListener = (index: number, result: ThreadResult) => void;

export class EnvironmentThread {
  private readonly runtime: ThreadRuntime;
  private readonly supervisor: Supervisor<Fault>;
  private playing = false;

  constructor(private readonly options: ThreadOptions) {
    this.runtime = new ThreadRuntime(options);
    this.supervisor = new Supervisor(this.runtime);
  }

  get tag(): string {
    return this.options.tag;
  }

  get version(): string {
    return this.options.bundle.version;
  }

  get files(): string[] {
    return this.options.bundle.files;
  }

  get bundle(): Bundle {
    return this.options.bundle;
  }

  get code(): string {
    return this.options.bundle.code;
  }

  /**
   * Number of episodes, including failed episodes that are not closed and episodes that are being started. At 0 the
   * thread is unused.
   */
  get episodes(): number {
    return Math.max(this.runtime.history.size, this.supervisor.queue.size);
  }

  set timeoutMs(limit: number) {
    if (limit === this.options.timeoutMs) return;
    this.options.timeoutMs = limit;
    this.runtime.handle?.limitChanged();
  }

  /** Whether episodes have taken steps since the last call of `covered`. */
  get played(): boolean {
    return this.playing;
  }

  get covers(): boolean {
    return this.options.cover;
  }

  /** Time at which the current call was first observed; undefined if no items are pending. */
  get busySince(): number | undefined {
    return this.runtime.handle?.busySince;
  }

  /** Memory of the worker in bytes, from its last report. The worker reports between calls and while it waits. */
  get bytes(): number {
    return this.runtime.handle?.bytes ?? 0;
  }

  /** Starts the worker and loads the environment. A thread whose load fails cannot be used again. */
  async load(): Promise<{ description: Description } | { failure: EnvironmentFailure }> {
    const refusal = await this.supervisor.ready();
    if (!refusal) return { description: this.runtime.loaded! };
    this.stop();
    return { failure: this.runtime.failure(refusal.cause) };
  }

  /**
   * Runs items. No two of the items may belong to the same episode. An item starts after all earlier items of its
   * episode. Returns results in the order of the items; `onResult` receives each result as soon as it is ready.
   */
  async run(items: readonly ThreadItem[], onResult?: ThreadListener): Promise<ThreadResult[]> {
    const indices = new Map(items.map(({ episode }, i) => [episode, i]));
    const results = await this.supervisor.run([...indices.keys()], this.jobOf(items, indices, onResult));
    return items.map(({ episode }) => results.get(episode)!);
  }

  /**
   * Returns the worker's coverage counts since the last call. Empty if coverage is off, if no worker is running, or if
   * the worker ends before its reply.
   */
  covered(): Promise<CoveredRange[]> {
    const { handle } = this.runtime;
    this.playing = false;
    return handle && this.options.cover ? handle.covered() : Promise.resolve([]);
  }

  /**
   * Ends the worker because the process uses more than `limit` bytes, and frees the worker's memory at once. If no call
   * is running, all episodes of the worker fail, because a replay would allocate the same memory again.
   */
  endForMemory(limit: number): void {
    this.runtime.endForMemory(limit);
  }

  /** Ends the worker without waiting for its exit, because native code may delay the exit for long. */
  stop(): void {
    this.runtime.stop();
  }

  private jobOf(
    items: readonly ThreadItem[],
    indices: ReadonlyMap<string, number>,
    onResult: ThreadListener | undefined,
  ): Job<ThreadResult, Fault> {
    const itemOf = (episode: string) => items[indices.get(episode)!];
    /** Episodes that this batch resets or closes; their earlier state need not be rebuilt. */
    const leaving = new Set(items.filter(item => item.do === 'reset' || item.do === 'close').map(item => item.episode));
    const send: Job<ThreadResult, Fault>['send'] = async (episodes, alone, report) => {
      const started = this.runtime.running || this.supervisor.starting;
      if (!started && episodes.every(episode => itemOf(episode).do === 'close')) {
        // no worker is running: these episodes exist only in the history
        report(episodes.map(episode => [episode, this.closed(episode)]));
        return undefined;
      }
      const refusal = await this.supervisor.ready(leaving);
      if (refusal) return refusal;
      const failed = episodes.filter(episode => this.failureBefore(itemOf(episode)));
      if (failed.length > 0)
        report(failed.map(episode => [episode, this.failed(itemOf(episode), this.failureBefore(itemOf(episode))!)]));
      const open = failed.length > 0 ? episodes.filter(episode => !failed.includes(episode)) : episodes;
      if (open.length === 0) return undefined;
      return this.runtime.send(open.map(itemOf), alone || this.supervisor.exclusive, (item, result) => {
        const { episode } = item as ThreadItem;
        report([[episode, this.settle(item as ThreadItem, result)]]);
      });
    };
    const fail = (episode: string, { cause }: WorkerEnding): ThreadResult => {
      const item = itemOf(episode);
      return this.failed(item, this.failureBefore(item) ?? this.runtime.failure(cause, item));
    };
    const onResults = (results: Results<ThreadResult>) => {
      for (const [episode, result] of results) {
        leaving.delete(episode);
        onResult?.(indices.get(episode)!, result);
      }
    };
    return { send, fail, onResults };
  }

  /**
   * Returns the earlier failure of the item's episode; undefined if the episode has not failed. Always undefined for
   * `reset` and `close`, which are allowed on failed episodes.
   */
  private failureBefore(item: ThreadItem): EnvironmentFailure | undefined {
    if (item.do === 'reset' || item.do === 'close') return undefined;
    return this.runtime.history.get(item.episode)?.failure;
  }

  private closed(episode: string): ThreadResult {
    this.runtime.history.close(episode);
    return {};
  }

  /** Updates the history with the result of an item, and returns the result for the trainer. */
  private settle(item: ThreadItem, { fault, ...result }: WorkResult): ThreadResult {
    const { history, options } = this.runtime;
    if (item.do === 'close') {
      this.closed(item.episode);
      if (fault) options.onLog('stderr', `${this.runtime.failure(fault, item).message}\n`);
      return result;
    }
    const failure = fault && this.runtime.failure(fault, item);
    if (item.do === 'reset') history.begun(startOf(item), result.observation ?? '', failure);
    const record = history.get(item.episode);
    if (item.do === 'step') this.playing = true;
    if (item.do === 'step' && record) {
      history.acted(item.episode, result.outcomes ?? []);
      if (failure) history.fail(item.episode, failure);
      result.observation = record.note = result.observation ?? record.note;
    }
    return failure ? { ...result, failure } : result;
  }

  /** Records that an item failed and returns its result. An episode that failed stays failed until it is reset. */
  private failed(item: ThreadItem, failure: EnvironmentFailure): ThreadResult {
    const { history } = this.runtime;
    if (item.do === 'close') return this.closed(item.episode);
    if (item.do === 'reset') history.begun(startOf(item), '', failure);
    // If the solver ended the worker, the episode does not fail, because its replay does not call the solver.
    else if (item.do === 'step') history.fail(item.episode, failure);
    return { observation: history.get(item.episode)?.note ?? '', outcomes: [], failure };
  }
}

const startOf = ({ episode, seed, member, mode }: Extract<ThreadItem, { do: 'reset' }>) => {
  return { episode, seed, member, mode };
};
