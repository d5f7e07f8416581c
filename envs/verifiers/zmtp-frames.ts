// Frames of ZMTP 3.0, the protocol of ZeroMQ over TCP (rfc.zeromq.org/spec/23), as pure functions. A frame is a byte of
// flags, a length of one or eight bytes, and a body. A message is a sequence of frames, all but the last of which have
// the flag `more`. A command belongs to the connection, not to a message.
const [more, long, command] = [1, 2, 4];

export interface Frame {
  isCommand: boolean;
  /** Whether further frames of the same message follow. */
  hasMore: boolean;
  body: Uint8Array;
}

/** Bytes of the greeting with which both sides begin. */
export const greetingBytes = 64;

/** Returns the greeting of a client without authentication (the mechanism NULL). */
export function greeting(): Uint8Array {
  const bytes = new Uint8Array(greetingBytes);
  bytes[0] = 0xff;
  bytes[9] = 0x7f;
  bytes[10] = 3; // version 3.0
  bytes.set(new TextEncoder().encode('NULL'), 12);
  return bytes;
}

/** Returns why a peer's greeting is refused, as the rest of a sentence about the server; undefined if it is fine. */
export function greetingProblem(bytes: Uint8Array): string | undefined {
  if (bytes[0] !== 0xff || (bytes[9] & 1) !== 1) return 'does not speak ZeroMQ';
  if (bytes[10] < 3) return `speaks version ${bytes[10]} of ZeroMQ's protocol, expected 3`;
  const mechanism = new TextDecoder('latin1').decode(bytes.subarray(12, 32)).replace(/\0+$/, '');
  return mechanism === 'NULL' ? undefined : `asks for the authentication ${mechanism}, which is not supported`;
}

/** Returns the bytes of a frame. */
export function frameBytes({ isCommand, hasMore, body }: Frame): Uint8Array {
  const isLong = body.length > 255;
  const head = isLong ? 9 : 2;
  const bytes = new Uint8Array(head + body.length);
  bytes[0] = (hasMore ? more : 0) | (isLong ? long : 0) | (isCommand ? command : 0);
  if (isLong) new DataView(bytes.buffer).setBigUint64(1, BigInt(body.length));
  else bytes[1] = body.length;
  bytes.set(body, head);
  return bytes;
}

/** Returns the bytes of a message. */
export function messageBytes(parts: readonly Uint8Array[]): Uint8Array {
  const frames = parts.map((body, index) => ({ isCommand: false, hasMore: index < parts.length - 1, body }));
  return Buffer.concat(frames.map(frameBytes));
}

/** Returns the command frame with which a socket says what it is. */
export function readyCommand(socketType: string): Uint8Array {
  const text = new TextEncoder();
  const name = text.encode('Socket-Type');
  const value = text.encode(socketType);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, value.length);
  const body = Buffer.concat([commandName('READY'), Uint8Array.of(name.length), name, length, value]);
  return frameBytes({ isCommand: true, hasMore: false, body });
}

/** Returns the answer to a `PING` command (ZMTP 3.1): its context comes back, without its two bytes of lifetime. */
export const pongCommand = (ping: Uint8Array): Uint8Array =>
  frameBytes({
    isCommand: true,
    hasMore: false,
    body: Buffer.concat([commandName('PONG'), ping.subarray(1 + 'PING'.length + 2)]),
  });

/** Returns the name of a command. */
export const nameOfCommand = (body: Uint8Array): string =>
  new TextDecoder('latin1').decode(body.subarray(1, 1 + (body.at(0) ?? 0)));

const commandName = (name: string): Uint8Array => Buffer.concat([Uint8Array.of(name.length), Buffer.from(name)]);

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  private rest: Uint8Array = new Uint8Array();

  /** @param maxBytes maximum length of a frame's body */
  constructor(private readonly maxBytes: number) {}

  /**
   * Returns the frames that are complete with these further bytes.
   * @throws Error if a frame is longer than `maxBytes`, or has unknown flags
   */
  push(bytes: Uint8Array): Frame[] {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    const frames: Frame[] = [];
    for (let frame = this.take(); frame; frame = this.take()) frames.push(frame);
    return frames;
  }

  private take(): Frame | undefined {
    const { rest } = this;
    if (rest.length < 2) return undefined;
    const flags = rest[0];
    if (flags & ~(more | long | command)) throw new Error(`sent a frame with the unknown flags ${flags}`);
    const head = flags & long ? 9 : 2;
    if (rest.length < head) return undefined;
    const length =
      head === 2 ? rest[1] : Number(new DataView(rest.buffer, rest.byteOffset, rest.byteLength).getBigUint64(1));
    if (length > this.maxBytes) throw new Error(`sent a frame of ${length} bytes, expected at most ${this.maxBytes}`);
    if (rest.length < head + length) return undefined;
    this.rest = rest.subarray(head + length);
    return {
      isCommand: (flags & command) !== 0,
      hasMore: (flags & more) !== 0,
      body: rest.slice(head, head + length),
    };
  }
}
