// One loaded environment and its supervised worker thread (environments/supervision/supervisor.ts). A call that times
// out or a worker that exits fails only its own episode: a new worker is started and the other live episodes are
// replayed, invisibly to the trainer. Batches, and calls that return promises, overlap; items of one episode run in
// order.
import type { EnvironmentFailure } from '../../../protocol/environment-link';
import { Supervisor, type Job, type Results } from '../../supervision/supervisor';
import type { Bundle } from '../build/build';
import { ThreadRuntime, type ThreadOptions } from './thread-runtime';
import type { WorkerEnding } from './worker-handle';
import type { CoveredRange, Description, Fault, WorkItem, WorkResult } from './work';

export type ThreadItem = Exclude<WorkItem, { do: 'load' | 'replay' }>;
export interface ThreadResult extends Omit<WorkResult, 'fault'> {
  failure?: EnvironmentFailure;
}
/** Called with the result of the item at `index`. */
export type ThreadListener = (index: number, result: ThreadResult) => void;

export class EnvironmentThread {
  private readonly runtime: ThreadRuntime;
  private readonly supervisor: Supervisor<Fault>;

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
   * Number of live episodes, including failed ones until they are closed and those being started. At 0 the thread is
   * unused.
   */
  get episodes(): number {
    return Math.max(this.runtime.history.size, this.supervisor.queue.size);
  }

  set timeoutMs(limit: number) {
    this.options.timeoutMs = limit;
  }

  get covers(): boolean {
    return this.options.cover;
  }

  /** When the current call was first seen, or undefined if no item is running. */
  get busySince(): number | undefined {
    return this.runtime.handle?.busySince;
  }

  /** Memory of the worker in bytes, as last reported. The worker measures between calls and while it waits. */
  get bytes(): number {
    return this.runtime.handle?.bytes ?? 0;
  }

  /** Starts the worker and evaluates the environment. A thread that fails to load cannot be used again. */
  async load(): Promise<{ description: Description } | { failure: EnvironmentFailure }> {
    const refusal = await this.supervisor.ready();
    if (!refusal) return { description: this.runtime.loaded! };
    this.stop();
    return { failure: this.runtime.failure(refusal.cause) };
  }

  /**
   * Runs the items, at most one per episode, each after the pending items of its episode. Returns results in the order
   * of the items. `onResult` receives each result as soon as it is there.
   */
  async run(items: readonly ThreadItem[], onResult?: ThreadListener): Promise<ThreadResult[]> {
    const indices = new Map(items.map(({ episode }, i) => [episode, i]));
    const results = await this.supervisor.run([...indices.keys()], this.jobOf(items, indices, onResult));
    return items.map(({ episode }) => results.get(episode)!);
  }

  /** Returns the worker's counts since the last call. Empty if there is no worker or it ends before it answers. */
  covered(): Promise<CoveredRange[]> {
    const { handle } = this.runtime;
    return handle && this.options.cover ? handle.covered() : Promise.resolve([]);
  }

  /**
   * Ends the worker because its process exceeds `limit` bytes, and frees its memory at once. If no call is running, all
   * its episodes fail, because rebuilding them would allocate the same memory again.
   */
  endForMemory(limit: number): void {
    this.runtime.endForMemory(limit);
  }

  /** Ends the worker without waiting for it, since native code may block it for long. */
  stop(): void {
    this.runtime.stop();
  }

  private jobOf(
    items: readonly ThreadItem[],
    indices: ReadonlyMap<string, number>,
    onResult: ThreadListener | undefined,
  ): Job<ThreadResult, Fault> {
    const itemOf = (episode: string) => items[indices.get(episode)!];
    /** Episodes that begin anew or end here, so that their earlier state is not rebuilt. */
    const leaving = new Set(items.filter(item => item.do === 'reset' || item.do === 'close').map(item => item.episode));
    const send: Job<ThreadResult, Fault>['send'] = async (episodes, alone, report) => {
      const started = this.runtime.running || this.supervisor.starting;
      if (!started && episodes.every(episode => itemOf(episode).do === 'close')) {
        report(episodes.map(episode => [episode, this.closed(episode)])); // no worker holds them
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

  /** The failure by which an item's episode failed before it. */
  private failureBefore(item: ThreadItem): EnvironmentFailure | undefined {
    if (item.do === 'reset' || item.do === 'close') return undefined;
    return this.runtime.history.get(item.episode)?.failure;
  }

  private closed(episode: string): ThreadResult {
    this.runtime.history.close(episode);
    return {};
  }

  /** Updates the history with the result of an item. */
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
    if (item.do === 'step' && record) {
      history.acted(item.episode, result.outcomes ?? []);
      if (failure) history.fail(item.episode, failure);
      result.observation = record.note = result.observation ?? record.note;
    }
    return failure ? { ...result, failure } : result;
  }

  /** Returns the result of a failed item. The episode stays failed until it is reset. */
  private failed(item: ThreadItem, failure: EnvironmentFailure): ThreadResult {
    const { history } = this.runtime;
    if (item.do === 'close') return this.closed(item.episode);
    if (item.do === 'reset') history.begun(startOf(item), '', failure);
    // A failed solver does not fail the episode; it is rebuilt unchanged.
    else if (item.do === 'step') history.fail(item.episode, failure);
    return { observation: history.get(item.episode)?.note ?? '', outcomes: [], failure };
  }
}

const startOf = ({ episode, seed, member, mode }: Extract<ThreadItem, { do: 'reset' }>) => {
  return { episode, seed, member, mode };
};
