// Connection to a run's trainer: JSON-RPC over the socket or pipe named in the run's lease. When the trainer restarts
// (a resume writes a new lease) or the socket closes, the client reconnects with increasing delays. It stops when it is
// disposed of. A lost connection loses no data, because all persistent data is in the run folder. If the trainer is on
// another machine, commands go through the run folder. Must not import `vscode`.
import { connect, type Socket } from 'node:net';
import { basename } from 'node:path';
import { ErrorCodes, ResponseError, type MessageConnection, type RequestType } from 'vscode-jsonrpc/node';
import type { Lease } from '../../run-data/lease-file';
import type { RunEvent, SettingChange } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import { askByFile, isElsewhere } from '../../node/run-requests';
import { socketMessages } from '../../node/socket-messages';
import {
  appended,
  change,
  checkpoint,
  coverEnvironments,
  debugEnvironments,
  endDebugging,
  eventHappened,
  hello,
  isLocalEndpoint,
  pause,
  resume,
  statusChanged,
  stop,
  watch,
  watchedEpisode,
  watchedTokens,
  type WatchChoice,
  type WatchedEpisode,
  type WatchedTurn,
} from '../../protocol/trainer-link';
import { UserError } from '../../common/user-error';

/** Callbacks for the events of a connection. */
export interface TrainerListener {
  status(status: RunStatus, fraction: number): void;
  appended(file: string): void;
  event(event: RunEvent): void;
  /** Called with the reason why a connection attempt failed or a connection ended, for the log. */
  problem(message: string): void;
}

/** Callbacks for the token reports of one episode. */
export interface EpisodeWatcher {
  /** Called with the available tags once per connection. */
  tags(tags: string[]): void;
  episode(episode: WatchedEpisode | null): void;
  tokens(update: { id: string; turn: number; at: number; tokens: WatchedTurn['tokens'] }): void;
}

/** Delays between connection attempts, in milliseconds; the last delay repeats. */
const pauses = [100, 250, 500, 1000, 2000, 5000];
/**
 * Time limit in milliseconds. A command fails if no connection is established within this time. A connection fails if
 * the trainer does not reply to `hello` within this time.
 */
const timeoutMs = 5000;
/**
 * Time limits in milliseconds for the reply of a trainer on another machine, which receives requests through the run
 * folder. `longestStepMs` is the limit for saving a checkpoint, because the trainer saves it, and replies, only at the
 * end of a step.
 */
const [fileReplyMs, longestStepMs] = [30_000, 3_600_000];

export class TrainerClient {
  private connection: MessageConnection | undefined;
  private socket: Socket | undefined;
  private disposed = false;
  private wake: (() => void) | undefined;
  private watching: { choice: WatchChoice; watcher: EpisodeWatcher } | undefined;
  private readonly waiting = new Set<() => void>();

  /**
   * Starts connecting immediately. `lease` reads the current lease of the run in `folder`. A trainer that serves another
   * run is ignored.
   */
  constructor(
    readonly run: string,
    private readonly folder: string,
    private readonly lease: () => Promise<Lease | null | undefined>,
    private readonly listener: TrainerListener,
  ) {
    void this.keepConnected();
  }

  get connected(): boolean {
    return this.connection !== undefined;
  }

  /**
   * Each method below sends a request to the trainer and returns the trainer's reply. The methods throw a UserError if
   * the trainer cannot be reached or ends before it replies.
   */
  pause = (): Promise<RunStatus> => this.ask(pause, null);
  resume = (): Promise<RunStatus> => this.ask(resume, null);
  stop = (): Promise<RunStatus> => this.ask(stop, null);
  checkpoint = (): Promise<{ folder: string }> => this.ask(checkpoint, null, longestStepMs);
  change = (values: Record<string, number>, checkOnly = false): Promise<{ step: number; changes: SettingChange[] }> =>
    this.ask(change, { values, checkOnly });
  debugEnvironments = (): Promise<{ urls: string[] }> => this.askHere('debugging', debugEnvironments, null);
  endDebugging = (): Promise<RunStatus> => this.askHere('debugging', endDebugging, null);
  coverEnvironments = (on: boolean): Promise<RunStatus> => this.askHere('coverage', coverEnvironments, { on });

  /**
   * Requests token reports of an episode selected by `choice` and passes them to `watcher` until `unwatch` is called.
   * Repeats the request after a reconnect. Replaces the previous watcher.
   */
  watch(choice: WatchChoice, watcher: EpisodeWatcher): void {
    this.watching = { choice, watcher };
    if (this.connection) void this.beginWatching(this.connection);
  }

  unwatch(watcher: EpisodeWatcher): void {
    if (this.watching?.watcher !== watcher) return;
    this.watching = undefined;
    // An error means that the connection is lost. The error is ignored, because a lost connection delivers no reports
    // anyway.
    void this.connection?.sendRequest(watch, { on: false }).catch(() => undefined);
  }

  dispose(): void {
    this.disposed = true;
    this.connection = undefined;
    this.socket?.destroy();
    this.wake?.();
  }

  private async beginWatching(connection: MessageConnection): Promise<void> {
    const { watching } = this;
    if (!watching) return;
    try {
      const { tags, episode } = await connection.sendRequest(watch, { on: true, ...watching.choice });
      if (this.watching !== watching) return;
      watching.watcher.tags(tags);
      watching.watcher.episode(episode);
    } catch (error) {
      this.listener.problem((error as Error).message); // trainers of earlier versions do not support this request
    }
  }

  /** Sends a request that needs the trainer's socket. @throws UserError if the trainer is on another machine */
  private async askHere<P, R>(what: string, type: RequestType<P, R, void>, content: P): Promise<R> {
    const lease = this.connection ? undefined : await this.lease();
    if (lease && isElsewhere(lease))
      throw new UserError(
        `run ${this.run}: ${what} of environments needs a connection to the trainer, which runs on ${lease.host}: open the workspace in an editor on that machine, for example with Remote-SSH`,
      );
    return this.ask(type, content);
  }

  private async ask<P, R>(type: RequestType<P, R, void>, content: P, replyMs = fileReplyMs): Promise<R> {
    const lease = this.connection ? undefined : await this.lease();
    if (lease && isElsewhere(lease)) return askByFile(this.folder, lease, type, content, replyMs);
    const connection = await this.reach();
    try {
      return await connection.sendRequest<R>(type.method, content);
    } catch (error) {
      if (error instanceof ResponseError && error.code !== ErrorCodes.PendingResponseRejected)
        throw new UserError(error.message);
      throw new UserError(`run ${this.run}: the trainer exited before it replied; see the log of the run`);
    }
  }

  private async reach(): Promise<MessageConnection> {
    if (!this.connection && !this.disposed) {
      this.wake?.();
      await new Promise<void>(resolve => {
        const done = () => {
          clearTimeout(timer);
          this.waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        this.waiting.add(done);
      });
    }
    if (this.connection) return this.connection;
    throw new UserError(
      `run ${this.run}: the trainer does not answer: see the log of the run, then stop the process or resume the run`,
    );
  }

  private async keepConnected(): Promise<void> {
    for (let tries = 0; !this.disposed; tries++) {
      try {
        const lease = await this.lease();
        if (lease) {
          await this.serve(lease);
          tries = -1; // a connection was established, so the next attempt starts with the shortest delay
        }
      } catch (error) {
        this.listener.problem(error instanceof Error ? error.message : String(error));
      }
      if (!this.disposed) await this.sleep(pauses[Math.min(Math.max(tries, 0), pauses.length - 1)]);
    }
  }

  /** Connects, sends `hello`, and returns when the connection has ended. Throws if `hello` fails. */
  private async serve(lease: Lease): Promise<void> {
    if (!isLocalEndpoint(lease.endpoint, process.platform === 'win32'))
      throw new Error(`the lease names ${lease.endpoint}, which is not a socket of this machine`);
    const socket = (this.socket = connect({ path: lease.endpoint }));
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
        socket.once('close', () => reject(new Error('the connection was closed before it was established')));
      });
      socket.on('error', error => this.listener.problem(error.message));
      const connection = socketMessages(socket);
      // Messages are ignored until the reply to `hello` has identified the trainer's run. No data is lost, because the
      // reply contains the status and the run folder contains everything else.
      let isOurs = false;
      const ours =
        <T>(deliver: (message: T) => void) =>
        (message: T): void => {
          if (isOurs) deliver(message);
        };
      connection.onNotification(
        statusChanged,
        ours(({ status, fraction }) => this.listener.status(status, fraction)),
      );
      connection.onNotification(
        appended,
        ours(({ file }) => this.listener.appended(file)),
      );
      connection.onNotification(
        eventHappened,
        ours(event => this.listener.event(event)),
      );
      connection.onError(([error]) => this.listener.problem(error.message));
      connection.listen();
      const refused = setTimeout(
        () => socket.destroy(new Error('the trainer did not reply to the request "hello"')),
        timeoutMs,
      );
      const welcome = await Promise.race([connection.sendRequest(hello, { token: lease.token }), closed]).finally(() =>
        clearTimeout(refused),
      );
      if (!welcome) throw new Error('the trainer closed the connection without a reply to the request "hello"');
      if (welcome.run !== basename(this.folder))
        throw new Error(`the lease belongs to the trainer of run ${welcome.run}`);
      isOurs = true;
      this.connection = connection;
      this.listener.status(welcome.status, 0);
      connection.onNotification(watchedEpisode, ({ episode }) => this.watching?.watcher.episode(episode));
      connection.onNotification(watchedTokens, update => this.watching?.watcher.tokens(update));
      void this.beginWatching(connection);
      for (const done of [...this.waiting]) done();
      await closed;
      connection.dispose();
    } finally {
      this.connection = undefined;
      socket.destroy();
    }
  }

  private sleep(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(() => this.wake?.(), ms);
      this.wake = () => {
        clearTimeout(timer);
        this.wake = undefined;
        resolve();
      };
    });
  }
}
