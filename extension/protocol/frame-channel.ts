// A pipe that carries frames in both directions. Whatever comes in that is no frame, or the pipe's end, is reported once, and nothing
// after it: no error of the pipe or of its content is ever thrown at whoever owns it.
import type { Duplex } from 'node:stream';
import { FrameReader, FrameWriter } from './frames';

/** Descriptor of the pipe in an environment process. */
export const channelDescriptor = 3;

export interface ChannelOwner {
  message(message: unknown): void;
  /** The pipe has ended, or what came is no frame: `why` is the rest of a sentence whose subject is the other side. Called once. */
  broken(why: string, ended: boolean): void;
}

export class FrameChannel {
  private readonly writer = new FrameWriter();
  private readonly reader = new FrameReader();
  private open = true;

  constructor(
    private readonly pipe: Duplex,
    private readonly owner: ChannelOwner,
  ) {
    pipe.on('data', (chunk: Buffer) => this.receive(chunk));
    pipe.on('error', (error: Error) => this.end(`its channel failed (${error.message})`, true));
    for (const event of ['end', 'close']) pipe.on(event, () => this.end('closed its channel', true));
  }

  /** Sends plain data; `sent` is called when the system has it, or will not. @throws FrameError where it is too large for a frame */
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

  /** Nothing is read or sent any more. */
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
