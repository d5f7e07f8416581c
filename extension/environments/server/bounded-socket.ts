// A WebSocket with bounded memory per peer: messages are handled one at a time, the next after the reply to the
// previous one has been sent; meanwhile reading is paused. A peer that accepts no data for `sendMs` is disconnected. ws
// still emits messages of a chunk it has read after `pause`: they are queued here, and a chunk has at most 64 KiB. ws
// itself bounds replies to pings (maxPendingAutoPongs).
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';

export class BoundedSocket {
  private readonly waiting: string[] = [];
  private isHandling = false;
  private handle: ((text: string) => Promise<void>) | undefined;

  /**
   * @param transport the socket below the WebSocket; only this object may set its timeout
   * @param sendMs milliseconds for which the peer may accept no data
   */
  constructor(
    private readonly socket: WebSocket,
    private readonly transport: Socket,
    private readonly sendMs: number,
  ) {
    socket.pause(); // until there is a listener, data stays in the network
    socket.on('error', () => undefined); // a close event follows
    transport.on('timeout', () => socket.terminate());
    socket.on('message', (raw: RawData) => {
      this.waiting.push((raw as Buffer).toString('utf8'));
      void this.handleAll();
    });
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN;
  }

  /** Passes each message to `handle`, one at a time. */
  listen(handle: (text: string) => Promise<void>): void {
    this.handle = handle;
    void this.handleAll();
  }

  onClose(closed: () => void): void {
    this.socket.once('close', closed);
  }

  /** Resolves once the message has been sent or can no longer be sent. */
  async send(text: string): Promise<void> {
    this.transport.setTimeout(this.sendMs);
    await new Promise<void>(resolve => this.socket.send(text, () => resolve()));
    this.transport.setTimeout(0);
  }

  /** Starts the closing handshake; ws disconnects a peer that does not answer it. */
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
    this.socket.resume(); // also after the last message, to notice the end of the connection
  }
}
