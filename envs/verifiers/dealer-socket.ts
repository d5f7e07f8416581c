// A ZeroMQ socket of type DEALER with one connection over TCP, without authentication. It sends and receives messages of
// several parts. ZeroMQ's library is native code of 1 to 2 MB per platform; the part of its protocol that one socket
// needs is small (docs/decisions/0022-zeromq-without-its-library.md).
import { connect, type Socket } from 'node:net';
import {
  FrameReader,
  greeting,
  greetingBytes,
  greetingProblem,
  messageBytes,
  nameOfCommand,
  pongCommand,
  readyCommand,
  type Frame,
} from './zmtp-frames';

/** Maximum bytes of a received part. A server sends the complete texts of an episode's turns. */
export const maxPartBytes = 256 * 2 ** 20;

export interface DealerOptions {
  host: string;
  port: number;
  /** Milliseconds in which the connection must be ready. */
  timeoutMs: number;
  onMessage(parts: Uint8Array[]): void;
  /** Called once if the connection ends without `close`; `problem` is the rest of a sentence about the server. */
  onEnd(problem: string): void;
}

export class DealerSocket {
  private readonly reader = new FrameReader(maxPartBytes);
  private greeted: Uint8Array | undefined = new Uint8Array();
  private parts: Uint8Array[] = [];
  private isOver = false;
  private ready: (() => void) | undefined;

  private constructor(
    private readonly socket: Socket,
    private readonly options: DealerOptions,
  ) {}

  /** @throws Error if the server cannot be reached or refuses; the message is the rest of a sentence about the server */
  static connect(options: DealerOptions): Promise<DealerSocket> {
    const { host, port, timeoutMs } = options;
    return new Promise((resolve, reject) => {
      const socket = connect({ host, port, noDelay: true });
      const timer = setTimeout(() => dealer.end(`was not ready within ${timeoutMs / 1000} s`), timeoutMs);
      const settled = (settle: () => void): void => {
        clearTimeout(timer);
        settle();
      };
      const onEnd = (problem: string): void =>
        dealer.ready === undefined ? options.onEnd(problem) : settled(() => reject(new Error(problem)));
      const dealer = new DealerSocket(socket, { ...options, onEnd });
      dealer.ready = () => {
        dealer.ready = undefined;
        settled(() => resolve(dealer));
      };
      socket.once('connect', () => socket.write(greeting()));
      socket.on('data', bytes => dealer.receive(bytes));
      socket.once('error', error => dealer.end(`cannot be reached (${error.message})`));
      socket.once('close', () => dealer.end('closed the connection'));
    });
  }

  /** Sends a message. */
  send(parts: readonly Uint8Array[]): void {
    if (!this.isOver) this.socket.write(messageBytes(parts));
  }

  /** Sends what is still to be sent, and ends the connection. `onEnd` is not called. */
  close(): void {
    this.isOver = true;
    this.socket.end();
    this.socket.unref();
  }

  private receive(bytes: Uint8Array): void {
    if (this.isOver) return;
    try {
      for (const frame of this.reader.push(this.afterGreeting(bytes))) this.take(frame);
    } catch (error) {
      this.end((error as Error).message);
    }
  }

  /** Returns the bytes that follow the peer's greeting. @throws Error if the greeting is refused */
  private afterGreeting(bytes: Uint8Array): Uint8Array {
    if (this.greeted === undefined) return bytes;
    this.greeted = Buffer.concat([this.greeted, bytes]);
    if (this.greeted.length < greetingBytes) {
      if (this.greeted[0] !== 0xff) throw new Error('does not speak ZeroMQ');
      return new Uint8Array();
    }
    const problem = greetingProblem(this.greeted);
    if (problem !== undefined) throw new Error(problem);
    const rest = this.greeted.subarray(greetingBytes);
    this.greeted = undefined;
    this.socket.write(readyCommand('DEALER'));
    return rest;
  }

  private take({ isCommand, hasMore, body }: Frame): void {
    if (isCommand) return this.obey(body);
    this.parts.push(body);
    if (hasMore) return;
    const { parts } = this;
    this.parts = [];
    this.options.onMessage(parts);
  }

  private obey(body: Uint8Array): void {
    const name = nameOfCommand(body);
    if (name === 'READY') this.ready?.();
    else if (name === 'PING') this.socket.write(pongCommand(body));
    else if (name === 'ERROR') throw new Error(`refused the connection (${String(Buffer.from(body.subarray(7)))})`);
  }

  private end(problem: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.socket.destroy();
    this.options.onEnd(problem);
  }
}
