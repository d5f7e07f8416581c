// A WebSocket whose use of memory is bounded. Messages are handled one at a time: reading is paused until the reply to
// the current message has been sent. A client that has accepted no data during the last `sendMs` milliseconds is
// disconnected. After `pause`, ws continues to emit messages from the chunk that it has read, which has at most 64 KiB.
// This class queues these messages. ws itself bounds replies to pings (maxPendingAutoPongs).
import type { Socket } from 'node:net';
import type { RawData, WebSocket } from 'ws';

export class BoundedSocket {
  private readonly waiting: string[] = [];
  private isHandling = false;
  private handle: ((text: string) => Promise<void>) | undefined;

  /**
   * @param transport the socket below the WebSocket; no other code may set its timeout
   * @param sendMs milliseconds after which a client that has accepted no data is disconnected
   */
  constructor(
    private readonly socket: WebSocket,
    private readonly transport: Socket,
    private readonly sendMs: number,
  ) {
    socket.pause(); // unread messages stay in the system's buffers until `listen`
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

  /** Sets the function that handles messages; it is called with one message at a time. */
  listen(handle: (text: string) => Promise<void>): void {
    this.handle = handle;
    void this.handleAll();
  }

  onClose(closed: () => void): void {
    this.socket.once('close', closed);
  }

  /** Sends a message. Resolves when the message has been sent or can no longer be sent. */
  async send(text: string): Promise<void> {
    this.transport.setTimeout(this.sendMs);
    await new Promise<void>(resolve => this.socket.send(text, () => resolve()));
    this.transport.setTimeout(0);
  }

  /**
   * Starts the closing handshake. If the client does not reply to the handshake, ws disconnects the client.
   * @param code WebSocket close code
   */
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
    this.socket.resume(); // also after the last message, so that the end of the connection is detected
  }
}
