// Runs the worker thread of one environment for the supervisor: starts a new worker when the previous one has ended,
// loads the code into it, and replays the live episodes in it. The worker publishes its current call, so that the
// episode at fault is known at once, unless several calls were waiting for promises.
import type { EnvironmentFailure } from '../../../protocol/environment-link';
import { EpisodeHistory, type EpisodeStart } from '../../supervision/episode-history';
import { longestTurnMs, type ToolSettings } from '../../../protocol/tool-link';
import { gibibytes } from '../../../common/numbers';
import type { Replay, Runtime } from '../../supervision/supervisor';
import type { Bundle } from '../build/build';
import { failureOf } from '../worker/failure';
import { WorkerHandle, type WorkerEnding } from './worker-handle';
import type { Description, Fault, WorkItem, WorkResult } from './worker-messages';

export interface ThreadOptions {
  tag: string;
  source: string;
  bundle: Bundle;
  config: Record<string, unknown>;
  tools?: ToolSettings;
  /** Whether to count how often each range of the code runs. */
  cover: boolean;
  /** Memory limit of the process in bytes; also limits the heap of this thread. */
  mostBytes: number;
  /** Path of the bundle of worker.ts. */
  workerFile: string;
  /** Time limit in milliseconds of one call into environment code. */
  timeoutMs: number;
  onLog(stream: 'stdout' | 'stderr', text: string): void;
}

const stoppedFault: Fault = { kind: 'died', what: 'was stopped', remedy: 'start the run again', action: -1 };

const foreignMessage = {
  kind: 'bad_value',
  what: 'posted a message from its thread',
  remedy: 'do not use the parentPort of node:worker_threads: it belongs to the process that runs the environment',
} as const;

/**
 * Maximum attempts to load code that has loaded successfully before. A single failure may be transient, so it does not
 * show that the code is broken.
 */
const reloads = 2;

export class ThreadRuntime implements Runtime<Fault> {
  /** The episodes, each with its latest observation as `note`. */
  readonly history = new EpisodeHistory<EpisodeStart, string>();
  /** The running worker; undefined while none is running. */
  handle: WorkerHandle | undefined;
  /** The environment's description; undefined until it has been loaded once. */
  loaded: Description | undefined;
  readonly repeatsTogether = false;
  private stopped = false;

  constructor(readonly options: ThreadOptions) {}

  get running(): boolean {
    return this.handle !== undefined;
  }

  /** Starts a worker and loads the environment. If no attempt succeeds, returns the reason. */
  async start(): Promise<WorkerEnding | undefined> {
    let cause: Fault = stoppedFault;
    for (let tries = this.loaded ? reloads : 1; tries > 0 && !this.stopped; tries--) {
      const fault = await this.startOnce();
      if (!fault) return undefined;
      cause = fault;
    }
    return { blame: 'everybody', cause };
  }

  replays(leaving: ReadonlySet<string>): Replay<Fault>[] {
    const live = this.history.live().map(({ start }) => start.episode);
    return [{ episodes: live.filter(episode => !leaving.has(episode)) }];
  }

  replay(episodes: readonly string[], alone: boolean): Promise<WorkerEnding | undefined> {
    const items = episodes.map(episode => this.replayOf(episode));
    return this.send(items, alone, (item, { fault }) => fault && 'episode' in item && this.lose(item.episode, fault));
  }

  lose(episode: string, fault: Fault): void {
    this.history.fail(episode, this.failure(fault, this.replayOf(episode)));
  }

  discard(): void {
    this.end(stoppedFault);
  }

  /** Sends items to the running worker. If the worker ends, or if no worker is running, returns the reason. */
  async send(
    items: readonly WorkItem[],
    alone: boolean,
    onResult: (item: WorkItem, result: WorkResult) => void,
  ): Promise<WorkerEnding | undefined> {
    return this.handle ? this.handle.send(items, alone, onResult) : { blame: 'other', cause: stoppedFault };
  }

  /**
   * Converts a fault into a failure with its location.
   * @param item the item that failed; undefined if no item was running
   */
  failure(fault: Fault, item?: WorkItem): EnvironmentFailure {
    const { tag, source, bundle, timeoutMs } = this.options;
    const record = item && item.do !== 'load' ? this.history.get(item.episode) : undefined;
    const held = record && { ...record.start, actions: record.actions };
    const episode = item?.do === 'reset' || item?.do === 'replay' ? { ...item, actions: [] } : held;
    return failureOf(fault, { tag, source, bundle, timeoutMs, names: this.loaded?.actions, item, episode });
  }

  /**
   * Ends the worker because the process uses more than `limit` bytes, and frees the worker's memory at once. If a call
   * is running, only its episode fails. If no call is running, the episode that used the memory is unknown; all
   * episodes of the worker then fail, because a replay would allocate the same memory again.
   */
  endForMemory(limit: number): void {
    const what = `exceeded the memory limit of ${gibibytes(limit)} for environments`;
    const remedy = 'reduce memory use, or raise workbench.max_environment_memory_gb';
    this.endForOffence({ kind: 'died', what, remedy }, true);
  }

  /** Ends the worker; no further worker is started. */
  stop(): void {
    this.stopped = true;
    this.end(stoppedFault);
  }

  private replayOf(episode: string): Extract<WorkItem, { do: 'replay' }> {
    const { start, actions } = this.history.get(episode)!;
    return { do: 'replay', ...start, actions };
  }

  private async startOnce(): Promise<Fault | undefined> {
    const { tag, source, bundle, config, tools, cover, workerFile, mostBytes, onLog } = this.options;
    const { filename, code } = bundle;
    const startMs = tools && Object.keys(tools.servers).length > 0 ? longestTurnMs(tools) : 0;
    const handle: WorkerHandle = new WorkerHandle(
      {
        setup: { tag, source, filename, code, config, tools, cover },
        workerFile,
        mostBytes,
        limitMs: () => Math.max(this.options.timeoutMs, this.loaded?.patience_ms ?? startMs),
        onLog,
      },
      {
        ended: () => {
          if (this.handle === handle) this.handle = undefined;
        },
        exited: fault => onLog('stderr', `${this.failure(fault).message}\n`),
        offended: () => this.endForOffence(foreignMessage),
        spins: () => {
          const what = 'kept its thread busy after a call had timed out: the thread is restarted';
          onLog('stderr', `environment ${tag} (${source}) ${what}\n`);
          this.end(stoppedFault);
        },
      },
    );
    this.handle = handle;
    let loaded: WorkResult = {};
    const ending = await handle.send([{ do: 'load' }], false, (_, result) => (loaded = result));
    if (ending) return ending.cause;
    this.loaded = loaded.description ?? this.loaded;
    if (loaded.fault) handle.end(stoppedFault);
    return loaded.fault;
  }

  private end(fault: Omit<Fault, 'action'>, collect = false): void {
    this.handle?.end(fault, collect);
  }

  /**
   * Ends the worker because its code did something that is not allowed; `fault` describes what it did. If no items are
   * pending, it is unknown which episode did this, so all episodes of the worker fail.
   */
  private endForOffence(fault: Omit<Fault, 'action'>, collect = false): void {
    const idle = this.handle?.idle ?? true;
    this.end(fault, collect);
    if (!idle) return;
    const failure = this.failure({ ...fault, action: -1 });
    for (const { start } of this.history.live()) this.history.fail(start.episode, failure);
    this.options.onLog('stderr', `${failure.message}\n`);
  }
}
