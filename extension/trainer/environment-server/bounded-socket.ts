// A WebSocket whose peer cannot make this process hold much: messages are handled one at a time, the next when the answer to the one
// before has left this process; meanwhile nothing more is read. A peer that takes nothing of an answer for `sendMs` is cut off.
// ws goes on emitting the messages of a chunk it has read after `pause`: they wait here, and a chunk holds 64 KiB at most. Answers to
// pings are bounded by ws itself (maxPendingAutoPongs).
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';

export class BoundedSocket {
  private readonly waiting: string[] = [];
  private isHandling = false;
  private handle: ((text: string) => Promise<void>) | undefined;

  /**
   * @param transport below the WebSocket; its time-out is this object's to set
   * @param sendMs milliseconds in which the peer may take nothing of what is sent to it
   */
  constructor(
    private readonly socket: WebSocket,
    private readonly transport: Socket,
    private readonly sendMs: number,
  ) {
    socket.pause(); // what comes in before there is a listener waits in the network
    socket.on('error', () => undefined); // a close follows
    transport.on('timeout', () => socket.terminate());
    socket.on('message', (raw: RawData) => {
      this.waiting.push((raw as Buffer).toString('utf8'));
      void this.handleAll();
    });
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** From now on `handle` gets each message, when what it did for the one before is done. */
  listen(handle: (text: string) => Promise<void>): void {
    this.handle = handle;
    void this.handleAll();
  }

  onClose(closed: () => void): void {
    this.socket.once('close', closed);
  }

  /** Resolves when the message has left this process, or never will. */
  async send(text: string): Promise<void> {
    this.transport.setTimeout(this.sendMs);
    await new Promise<void>(resolve => this.socket.send(text, () => resolve()));
    this.transport.setTimeout(0);
  }

  /** Says that it ends; ws cuts a peer off that does not answer to that. */
  close(code: number): void {
    this.socket.close(code);
  }

  private async handleAll(): Promise<void> {
    if (this.isHandling || !this.handle) return;
    this.isHandling = true;
    this.socket.pause();
    for (let text = this.waiting.shift(); text !== undefined && this.isOpen; text = this.waiting.shift())
      await this.handle(text);
    this.isHandling = false;
    this.socket.resume(); // also after the last one: the end of the connection is read, too
  }
}
