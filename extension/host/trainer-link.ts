// The connection to a run's trainer: JSON-RPC over the socket or pipe that the run's lease names. It comes back by itself: when
// the trainer restarts (a resume writes a new lease) or the socket drops, it tries again with growing pauses until disposed.
// Losing it loses nothing, since all that lasts is in the run folder. No `vscode` here.
import { connect, type Socket } from 'node:net';
import {
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
  type MessageConnection,
  type RequestType,
} from 'vscode-jsonrpc/node';
import type { Lease, RunEvent, RunStatus } from '../protocol/run-folder';
import {
  appended,
  checkpoint,
  eventHappened,
  hello,
  pause,
  resume,
  statusChanged,
  stop,
} from '../protocol/trainer-link';
import { UserError } from '../protocol/user-error';

/** What a link tells its owner. */
export interface TrainerLinkListener {
  status(status: RunStatus, fraction: number): void;
  appended(file: string): void;
  event(event: RunEvent): void;
  /** For the log: why a try failed or a connection ended. */
  trouble(message: string): void;
}

/** Pauses between tries, in ms; the last one repeats. */
const pauses = [100, 250, 500, 1000, 2000, 5000];
/** How long a command waits for the connection, and the connection for its greeting, in ms. */
const patience = 5000;

export class TrainerLink {
  private connection: MessageConnection | undefined;
  private socket: Socket | undefined;
  private disposed = false;
  private wake: (() => void) | undefined;
  private readonly waiting = new Set<() => void>();

  /** `lease` reads the run's lease as it now stands. The link starts at once. */
  constructor(
    readonly run: string,
    private readonly lease: () => Promise<Lease | undefined>,
    private readonly listener: TrainerLinkListener,
  ) {
    void this.keepConnected();
  }

  get connected(): boolean {
    return this.connection !== undefined;
  }

  /**
   * Each asks the trainer and answers with what it says. Throws a UserError where the trainer can't be reached or ends before it
   * has answered.
   */
  pause = (): Promise<RunStatus> => this.ask(pause);
  resume = (): Promise<RunStatus> => this.ask(resume);
  stop = (): Promise<RunStatus> => this.ask(stop);
  checkpoint = (): Promise<{ folder: string }> => this.ask(checkpoint);

  dispose(): void {
    this.disposed = true;
    this.connection = undefined;
    this.socket?.destroy();
    this.wake?.();
  }

  private async ask<R>(type: RequestType<null, R, void>): Promise<R> {
    const connection = await this.reach();
    try {
      return await connection.sendRequest(type, null);
    } catch (error) {
      if (error instanceof ResponseError && error.code !== ErrorCodes.PendingResponseRejected)
        throw new UserError(error.message);
      throw new UserError(`run ${this.run}: its trainer ended before it answered: see its log`);
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
        const timer = setTimeout(done, patience);
        this.waiting.add(done);
      });
    }
    if (this.connection) return this.connection;
    throw new UserError(
      `run ${this.run}: its trainer does not answer: see its log, then stop the process or resume the run`,
    );
  }

  private async keepConnected(): Promise<void> {
    for (let tries = 0; !this.disposed; tries++) {
      try {
        const lease = await this.lease();
        if (lease) {
          await this.serve(lease);
          tries = -1; // it was connected: begin again with the shortest pause
        }
      } catch (error) {
        this.listener.trouble(error instanceof Error ? error.message : String(error));
      }
      if (!this.disposed) await this.sleep(pauses[Math.min(Math.max(tries, 0), pauses.length - 1)]);
    }
  }

  /** Connects, greets, and returns when the connection has ended. Throws where it did not come to the greeting. */
  private async serve(lease: Lease): Promise<void> {
    const socket = (this.socket = connect(lease.endpoint));
    const closed = new Promise<void>(resolve => socket.once('close', () => resolve()));
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.once('error', reject);
        socket.once('close', () => reject(new Error('closed before it was connected')));
      });
      socket.on('error', error => this.listener.trouble(error.message));
      const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
      connection.onNotification(statusChanged, ({ status, fraction }) => this.listener.status(status, fraction));
      connection.onNotification(appended, ({ file }) => this.listener.appended(file));
      connection.onNotification(eventHappened, event => this.listener.event(event));
      connection.onError(([error]) => this.listener.trouble(error.message));
      connection.listen();
      const refused = setTimeout(() => socket.destroy(new Error('the trainer did not greet back')), patience);
      const welcome = await Promise.race([connection.sendRequest(hello, { token: lease.token }), closed]).finally(() =>
        clearTimeout(refused),
      );
      if (!welcome) throw new Error('the trainer closed the connection instead of greeting');
      this.connection = connection;
      this.listener.status(welcome.status, 0);
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
