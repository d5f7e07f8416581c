// Fuzz targets for messages between the product's processes: JSON-RPC over a run's socket in both directions, lines of
// a stream, requests of a play session, replies of an environment process.
import { mkdtempSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { EnvironmentProcess } from '../../extension/environments/client/environment-process';
import { playRequest } from '../../extension/environments/tools/play-stdio';
import { isEnvironmentMessage } from '../../extension/protocol/environment-link';
import { jsonOrNothing } from '../../extension/common/json';
import { FrameReader, FrameWriter, framed } from '../../extension/node/frames';
import { linesOf } from '../../extension/common/stream-lines';
import { TrainerClient } from '../../extension/vscode/processes/trainer-client';
import type { RunStatus } from '../../extension/run-data/run-status-file';
import { RunControl } from '../../extension/trainer/run/run-control';
import { endpointFor, TrainerServer } from '../../extension/trainer/live/trainer-server';
import { holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';

const frame = (message: object): string => {
  const text = JSON.stringify({ jsonrpc: '2.0', ...message });
  return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};
const status: RunStatus = {
  ...{ state: 'running', step: 3, total_steps: 10, success: 0.5, reward: 0.25, tokens_per_s: 1000, eta_s: 7 },
  ...{ phase: 'rollout', updated: '2026-01-01T00:00:00.000Z' },
};
const token = 'secret';
const greeting = frame({ id: 1, method: 'ragen/hello', params: { token } });
const asked = [
  frame({ id: 2, method: 'ragen/pause', params: null }) + frame({ id: 3, method: 'ragen/resume', params: null }),
  frame({ id: 2, method: 'ragen/change', params: { values: { 'trainer.total_training_steps': 5 }, checkOnly: true } }),
  frame({ id: 2, method: 'ragen/watch', params: { on: true, tag: 'Bandit', group: 1 } }),
  frame({ id: 2, method: 'ragen/coverEnvironments', params: { on: true } }),
  frame({ id: 2, method: 'ragen/debugEnvironments', params: null }) +
    frame({ id: 3, method: 'ragen/endDebugging', params: null }),
  frame({ method: '$/cancelRequest', params: { id: 2 } }),
];
/** Messages of a trainer to an editor after the handshake. */
const said = [
  frame({ id: 0, result: { run: 'run-1', pid: 1, status } }),
  frame({ method: 'ragen/status', params: { status, fraction: 0.5 } }),
  frame({ method: 'ragen/appended', params: { file: 'metrics.jsonl', bytes: 10, step: 1 } }),
  frame({ method: 'ragen/event', params: { time: '2026', step: 1, kind: 'state', message: 'x' } }),
  frame({ id: 1, result: { tags: ['Bandit'], episode: null } }),
  frame({ method: 'ragen/watchedTokens', params: { id: 'a', turn: 1, at: 0, tokens: [{ text: 'x', logprob: -1 }] } }),
];

let endpoint = '';
let server: TrainerServer | undefined;
let sendServer: Server | undefined;
let hungUp = (): void => undefined;
let sending: Buffer = Buffer.alloc(0);

/** Sends bytes to the socket and waits until it closes. */
const send = (bytes: Buffer): Promise<void> =>
  new Promise(resolve => {
    const socket: Socket = createConnection(endpoint);
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
    socket.resume();
    socket.end(bytes);
  });

const frames = (messages: readonly unknown[]): Buffer => {
  const writer = new FrameWriter();
  return Buffer.concat(messages.map(message => writer.frame(message)));
};

let environment: EnvironmentProcess | undefined;
const state = { episode: 'e', observation: 'P_', version: 'v' };
const replies = [
  { id: 1, method: 'reset', episodes: [{ ...state, info: { a: 1 }, actions: { 1: 'Left' } }] },
  { id: 1, method: 'reset', episodes: [{ ...state, error: { kind: 'threw', message: 'x' } }], more: true },
  { method: 'log', tag: 't', stream: 'stdout', text: 'printed' },
].map(reply => JSON.stringify(reply));

export const frameTargets: readonly FuzzTarget[] = [
  {
    name: 'frames to a trainer',
    form: 'bytes',
    corpus: [greeting, ...asked, ...asked.map(each => greeting + each)],
    weight: 3,
    async begin() {
      const folder = mkdtempSync(join(tmpdir(), 's-'));
      endpoint = endpointFor(folder, 'run-1');
      const control = new RunControl(() => undefined);
      server = await TrainerServer.listen(endpoint, { id: 'run-1', token, control, status: () => status });
    },
    run: send,
    end: () => server?.close(),
  },
  {
    name: 'frames of a trainer',
    form: 'bytes',
    corpus: [said[0], ...said.slice(1).map(each => said[0] + each), said.join('')],
    weight: 2,
    async begin() {
      endpoint = join(mkdtempSync(join(tmpdir(), 's-')), 'socket');
      sendServer = createServer(socket => {
        socket.on('error', () => undefined);
        socket.once('data', () => socket.end(sending));
        socket.once('close', () => setImmediate(hungUp));
      });
      await new Promise<void>(resolve => sendServer!.listen(endpoint, resolve));
    },
    async run(input) {
      sending = input;
      const lease = { pid: 1, started: '2026', endpoint, token };
      const received: unknown[] = [];
      await new Promise<void>(resolve => {
        const receive = (what: unknown): void => void received.push(what);
        const link = new TrainerClient('run 1', 'run-1', () => Promise.resolve(lease), {
          status: receive,
          appended: receive,
          event: receive,
          problem: receive,
        });
        hungUp = () => {
          link.dispose();
          resolve();
        };
        link.watch({}, { tags: receive, episode: receive, tokens: receive });
      });
      return received;
    },
    end: () => void sendServer?.close(),
  },
  {
    name: 'lines of a stream',
    form: 'bytes',
    corpus: ['{"id":1}\n{"id":2}\n', 'a\u2028b\n\nc', 'one line without an end'],
    weight: 10,
    async run(input) {
      const text = input.toString('utf8');
      const parts = [
        text.slice(0, text.length / 3),
        text.slice(text.length / 3, text.length / 2),
        text.slice(text.length / 2),
      ];
      const lines: string[] = [];
      for await (const line of linesOf(Readable.from(parts.filter(part => part !== '')))) lines.push(line);
      const joined = lines.join('\n');
      holds(text === joined || text === `${joined}\n`, 'lines are not the text');
      return lines;
    },
  },
  {
    name: 'request to a played session',
    form: 'json',
    corpus: [
      '{"id":1,"do":"act","action":"Left"}',
      '{"id":2,"do":"restart","seed":5}',
      '{"id":3,"do":"undo"}',
      '{"id":4,"do":"act","action":3}',
    ],
    weight: 10,
    run: input => playRequest(input.toString('utf8')) ?? null,
  },
  {
    name: 'bytes of an environment process',
    form: 'bytes',
    corpus: [frames(['a', { b: [1, null], c: 'd' }]), frames([{ image: Uint8Array.of(1, 2, 3), n: NaN }, {}])],
    weight: 10,
    lawful: ['FrameError'],
    run: input => {
      const reader = new FrameReader();
      return [...reader.push(input.subarray(0, 30)), ...reader.push(input.subarray(30))];
    },
  },
  {
    name: 'content of a frame',
    form: 'json',
    corpus: ['{"a":[1,null,"b"],"c":{"$ragen":"NaN"}}', '{"image":{"$ragen":[0,3]},"of":{"$ragen":{"$ragen":1}}}'],
    weight: 10,
    lawful: ['FrameError'],
    run: input => [...new FrameReader().push(framed(input, [Uint8Array.of(1, 2, 3)], 0))],
  },
  {
    name: 'message of an environment process',
    form: 'json',
    corpus: [...replies, JSON.stringify({ id: 1, method: 'load', environments: [{ tag: 't', version: 'v' }] })],
    weight: 8,
    run(input) {
      const message = jsonOrNothing(input.toString('utf8'));
      if (!isEnvironmentMessage(message) || message.method === 'log') return null;
      return 'episodes' in message ? message.episodes.map(({ observation }) => observation.length) : [message.method];
    },
  },
  {
    name: 'reply of an environment process',
    form: 'json',
    corpus: replies,
    weight: 0.05,
    mostMs: 1000, // the process is restarted after each invalid reply
    async begin() {
      const entry = join(__dirname, 'fuzz-echo-process.cjs');
      environment = await EnvironmentProcess.start({
        entry,
        variables: process.env,
        stepTimeoutMs: 1000,
        onNotice: () => undefined,
      });
    },
    async run(input) {
      const reset = { episode: 'e', tag: input.toString('utf8'), seed: 1, member: 0, mode: 'train' as const };
      const states = await environment!.reset([reset]);
      await environment!.closeEpisodes(['e']);
      return states;
    },
    end: () => environment?.stop(),
  },
];
