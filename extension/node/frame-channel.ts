// A pipe that carries frames in both directions. Invalid input or the end of the pipe is reported once through
// `broken`, and nothing is read afterwards. Only `send` throws, for a message that is too large.
import type { Duplex } from 'node:stream';
import { FrameReader, FrameWriter } from './frames';

/** File descriptor of the pipe in an environment process. */
export const channelDescriptor = 3;

export interface ChannelOwner {
  message(message: unknown): void;
  /**
   * Called once, when the pipe has ended or its input is invalid. `why` is the reason as a sentence without a subject;
   * the subject is the process at the other end.
   */
  broken(why: string, ended: boolean): void;
}

const closed = 'closed its channel';
/**
 * Error codes of a write to a pipe that the other end has closed. Node may report such an error before it reports the
 * end of the input.
 */
const closedErrors = new Set<string | undefined>(['EPIPE', 'ECONNRESET']);

export class FrameChannel {
  private readonly writer = new FrameWriter();
  private readonly reader = new FrameReader();
  private open = true;

  constructor(
    private readonly pipe: Duplex,
    private readonly owner: ChannelOwner,
  ) {
    pipe.on('data', (chunk: Buffer) => this.receive(chunk));
    pipe.on('error', (error: NodeJS.ErrnoException) =>
      this.end(closedErrors.has(error.code) ? closed : `has a channel that failed (${error.message})`, true),
    );
    for (const event of ['end', 'close']) pipe.on(event, () => this.end(closed, true));
  }

  /**
   * Sends plain data. `sent` is called when the system has accepted the data, or if the channel is closed.
   * @throws FrameError if the message is too large for a frame
   */
  send(message: unknown, sent?: () => void): void {
    if (!this.open) return sent?.();
    this.pipe.write(this.writer.frame(message), () => sent?.());
  }

  private receive(chunk: Buffer): void {
    if (!this.open) return;
    const messages: unknown[] = [];
    let why: string | undefined;
    try {
      for (const message of this.reader.push(chunk)) messages.push(message);
    } catch (error) {
      why = `sent ${(error as Error).message}`;
    }
    for (const message of messages) if (this.open) this.owner.message(message);
    if (why !== undefined) this.end(why, false);
  }

  /** Stops reading and sending. */
  close(): void {
    this.open = false;
    this.pipe.destroy();
  }

  private end(why: string, ended: boolean): void {
    if (!this.open) return;
    this.close();
    this.owner.broken(why, ended);
  }
}
