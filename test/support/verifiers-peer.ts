// A peer of the environment server of verifiers: a ZeroMQ socket of type ROUTER on a free port of 127.0.0.1. Each test
// decides what it answers.
import { readFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { decode, encode } from '@msgpack/msgpack';
import {
  FrameReader,
  frameBytes,
  greeting,
  greetingBytes,
  messageBytes,
  readyCommand,
} from '../../envs/verifiers/zmtp-frames';

export interface PeerRequest {
  id: string;
  method: string;
  content: Record<string, unknown>;
  /** Sends a message with this content. */
  send(kind: 'delta' | 'reply', content: unknown): void;
  /** Sends the bytes as the content. */
  sendRaw(kind: string, content: Uint8Array): void;
  socket: Socket;
}

export interface VerifiersPeer {
  address: string;
  /** Requests so far, by method. */
  methods: string[];
  close(): Promise<void>;
}

/** @param answer called for each request; requests for `health` are answered by the peer */
export async function startVerifiersPeer(answer: (request: PeerRequest) => void): Promise<VerifiersPeer> {
  const methods: string[] = [];
  const server = createServer(socket => converse(socket, methods, answer));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { address: addressOf(server), methods, close: () => closed(server) };
}

/** Starts a server that is not ZeroMQ's or that refuses. */
export async function startOther(answer: (socket: Socket) => void): Promise<VerifiersPeer> {
  const server = createServer(socket => {
    socket.on('error', () => undefined);
    socket.resume();
    answer(socket);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return { address: addressOf(server), methods: [], close: () => closed(server) };
}

/** The messages that a real server sent during an episode of test/verifiers/letter_words_v1.py. */
export const recordedMessages = (): [kind: string, content: Uint8Array][] =>
  (JSON.parse(readFileSync('test/golden/verifiers/messages.json', 'utf8')) as [string, string][]).map(
    ([kind, content]) => [kind, Buffer.from(content, 'base64')],
  );

function converse(socket: Socket, methods: string[], answer: (request: PeerRequest) => void): void {
  let greeted = Buffer.alloc(0);
  let isGreeted = false;
  let parts: Buffer[] = [];
  const reader = new FrameReader(2 ** 20);
  socket.on('error', () => undefined);
  socket.write(greeting());
  socket.on('data', (bytes: Buffer) => {
    let rest = bytes;
    if (!isGreeted) {
      greeted = Buffer.concat([greeted, bytes]);
      if (greeted.length < greetingBytes) return;
      isGreeted = true;
      rest = greeted.subarray(greetingBytes);
      socket.write(readyCommand('ROUTER'));
      socket.write(
        frameBytes({ isCommand: true, hasMore: false, body: Buffer.from('\x04PING\x00\x64context', 'latin1') }),
      );
    }
    for (const { isCommand, hasMore, body } of reader.push(rest)) {
      if (isCommand) continue;
      parts.push(Buffer.from(body));
      if (hasMore) continue;
      const [id, method, content] = parts;
      parts = [];
      methods.push(String(method));
      const sendRaw = (kind: string, content: Uint8Array) =>
        void socket.write(messageBytes([id, Buffer.from(kind), content]));
      const send = (kind: string, content: unknown) => sendRaw(kind, encode(content));
      if (String(method) === 'health') send('reply', { success: true, error: null });
      else
        answer({
          id: String(id),
          method: String(method),
          content: decode(content) as Record<string, unknown>,
          send,
          sendRaw,
          socket,
        });
    }
  });
}

const addressOf = (server: Server): string => `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;

const closed = (server: Server): Promise<void> => new Promise(resolve => server.close(() => resolve()));
