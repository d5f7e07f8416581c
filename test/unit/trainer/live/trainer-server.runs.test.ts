// The server of a run for clients: authentication, messages, and protection of the run against any client.
import { existsSync, statSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RunState, RunStatus } from '../../../../extension/run-data/run-status-file';
import {
  checkpoint,
  coverEnvironments,
  debugEnvironments,
  endDebugging,
  hello,
  pause,
  resume,
  stop,
} from '../../../../extension/protocol/trainer-link';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { TrainerServer, endpointFor } from '../../../../extension/trainer/live/trainer-server';
import { until } from '../../../support/terminal';
import { connect } from '../../../support/watcher';
import type { Watcher } from '../../../support/watcher';

const status: RunStatus = {
  state: 'running',
  step: 3,
  total_steps: 10,
  success: 0.5,
  reward: 0.25,
  tokens_per_s: 1000,
  eta_s: 7,
  phase: 'rollout',
  updated: '2026-01-01T00:00:00.000Z',
};

let folder: string;
let endpoint: string;
let states: RunState[];
let control: RunControl;
let server: TrainerServer;
let watchers: Watcher[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-server-'));
  endpoint = endpointFor(folder, 'run-1');
  states = [];
  watchers = [];
  control = new RunControl(state => states.push(state));
  server = await TrainerServer.listen(endpoint, {
    id: 'run-1',
    token: 'secret',
    control,
    status: () => ({ ...status, state: control.state }),
  });
});
afterEach(async () => {
  for (const watcher of watchers) watcher.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function stranger(): Promise<Watcher> {
  const watcher = await connect(endpoint);
  watchers.push(watcher);
  return watcher;
}

async function friend(): Promise<Watcher> {
  const watcher = await stranger();
  await watcher.hello('secret');
  return watcher;
}

test.skipIf(process.platform === 'win32')(
  'the socket is accessible to its owner only, and is removed with the server',
  async () => {
    expect(statSync(endpoint).mode & 0o777).toBe(0o600);
    await server.close();
    expect(() => statSync(endpoint)).toThrow();
    server = await TrainerServer.listen(endpoint, { id: 'run-1', token: 'secret', control, status: () => status });
  },
);

test.skipIf(process.platform === 'win32')(
  'a run folder with a long path gets its socket in the temporary folder',
  async () => {
    const deep = join(folder, 'a-folder-with-a-long-name'.repeat(4), '.ragen/runs/20260101-000000-quickstart-0000');
    mkdirSync(deep, { recursive: true });
    const elsewhere = endpointFor(deep, 'run-1');
    expect(elsewhere.startsWith(tmpdir())).toBe(true);
    expect(elsewhere.length).toBeLessThan(100);
    const other = await TrainerServer.listen(elsewhere, {
      id: 'run-1',
      token: 'secret',
      control,
      status: () => status,
    });
    try {
      expect(statSync(elsewhere).mode & 0o777).toBe(0o600);
      expect(statSync(dirname(elsewhere)).mode & 0o777).toBe(0o700); // only the owner can read the folder
    } finally {
      await other.close();
    }
    expect(existsSync(dirname(elsewhere))).toBe(false);
  },
);

test.skipIf(process.platform === 'win32')(
  'a socket’s path is measured in bytes, in the run folder and in the temporary one',
  () => {
    const deep = join('/home', '日本語'.repeat(9), '.ragen/runs/20260101-000000-quickstart-0000');
    expect(deep.length).toBeLessThan(90); // the socket's name extends it to 142 bytes
    expect(endpointFor(deep, 'run-1').startsWith(join(tmpdir(), 'ragen-'))).toBe(true);
    const usual = process.env.TMPDIR;
    process.env.TMPDIR = join('/home', 'ё'.repeat(45));
    try {
      expect(endpointFor(deep, 'run-1')).toMatch(/^\/tmp\/ragen-[0-9a-f]{16}\/s$/);
    } finally {
      if (usual === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = usual;
    }
  },
);

test('hello with the token is answered with run, process and status', async () => {
  const watcher = await stranger();
  expect(await watcher.hello('secret')).toEqual({ run: 'run-1', pid: process.pid, status });
});

test.skipIf(process.platform === 'win32')('the socket is never accessible to others, not even briefly', async () => {
  const before = process.umask(0);
  try {
    await server.close();
    const listening = TrainerServer.listen(endpoint, { id: 'run-1', token: 'secret', control, status: () => status });
    expect(statSync(endpoint).mode & 0o777).toBe(0o600); // before other code could run
    expect(process.umask()).toBe(0);
    server = await listening;
  } finally {
    process.umask(before);
  }
});

test.each<[unknown]>([
  [''],
  ['secre'],
  ['secret '],
  ['Secret'],
  [null],
  [['secret']],
  [{ toString: 'secret' }],
  [0],
  [true],
])('the token %j is invalid: nothing is sent, and the connection is closed', async token => {
  const watcher = await stranger();
  await expect(watcher.link.sendRequest(hello, { token: token as string })).rejects.toThrow('wrong token');
  await watcher.closed;
  server.event({ time: status.updated, step: 3, kind: 'state', message: 'running' });
  expect(watcher.events).toEqual([]);
});

test('hello with another token is refused with a message, and the connection is closed', async () => {
  const watcher = await stranger();
  await expect(watcher.hello('guess')).rejects.toThrow('wrong token');
  await watcher.closed;
  expect(states).toEqual([]);
});

test('a client without hello may request nothing and receives nothing', async () => {
  const watcher = await stranger();
  for (const request of [pause, resume, stop])
    await expect(watcher.link.sendRequest(request, null)).rejects.toThrow('hello');
  await expect(watcher.link.sendRequest(checkpoint, null)).rejects.toThrow('hello');
  server.status(status, 0.5);
  server.event({ time: status.updated, step: 3, kind: 'state', message: 'running' });
  server.appended('metrics.jsonl', 10, 3);
  await expect(watcher.hello('secret')).resolves.toMatchObject({ run: 'run-1' });
  expect([watcher.statuses, watcher.events, watcher.appended]).toEqual([[], [], []]);
  expect(states).toEqual([]);
});

test('pause, resume and stop are answered with the resulting state', async () => {
  const watcher = await friend();
  expect((await watcher.link.sendRequest(pause, null)).state).toBe('paused');
  expect((await watcher.link.sendRequest(pause, null)).state).toBe('paused');
  const gate = control.gate();
  expect((await watcher.link.sendRequest(resume, null)).state).toBe('running');
  expect(await gate).toBe(true);
  expect((await watcher.link.sendRequest(pause, null)).state).toBe('paused');
  const second = control.gate();
  expect((await watcher.link.sendRequest(stop, null)).state).toBe('stopping');
  expect(await second).toBe(false);
  expect((await watcher.link.sendRequest(pause, null)).state).toBe('stopping');
  expect(states).toEqual(['paused', 'running', 'paused', 'stopping']);
});

test('a checkpoint request is answered after the checkpoint is written, or refused if the run ends first', async () => {
  const watcher = await friend();
  const first = watcher.link.sendRequest(checkpoint, null);
  await until('it is asked for', () => control.checkpointRequested);
  control.checkpointed('checkpoints/step-000003');
  expect(await first).toEqual({ folder: 'checkpoints/step-000003' });
  const second = watcher.link.sendRequest(checkpoint, null);
  await until('it is asked for', () => control.checkpointRequested);
  control.end();
  await expect(second).rejects.toThrow('the run ended before the requested checkpoint was written');
});

test('the latest status is sent, at most ten times per second', async () => {
  const watcher = await friend();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  for (let i = 1; i <= 50; i++) {
    server.status({ ...status, step: i }, i / 50);
    vi.advanceTimersByTime(10);
  }
  vi.advanceTimersByTime(100);
  vi.useRealTimers();
  await until('the newest arrives', () => watcher.statuses.at(-1)?.status.step === 50);
  // Updates during 0.5 s of simulated time, and one more for the latest status.
  expect(watcher.statuses.map(({ status: { step } }) => step)).toEqual([1, 11, 21, 31, 41, 50]);
});

test('events and growing files are sent to every client', async () => {
  const both = [await friend(), await friend()];
  server.event({ time: status.updated, step: 3, kind: 'alarm', message: 'entropy falls' });
  server.appended('metrics.jsonl', 1234, 3);
  for (const watcher of both) {
    await until('it is told', () => watcher.appended.length > 0);
    expect(watcher.events.map(({ message }) => message)).toEqual(['entropy falls']);
    expect(watcher.appended).toEqual([{ file: 'metrics.jsonl', bytes: 1234, step: 3 }]);
  }
});

/** A socket that sends `text` and never reads. */
async function mute(text: string): Promise<Socket> {
  const socket = createConnection({ path: endpoint, allowHalfOpen: true });
  await new Promise(resolve => socket.once('connect', resolve));
  socket.on('error', () => undefined);
  socket.pause();
  socket.write(text);
  return socket;
}

/** Resolves when the server has closed the socket. */
const hungUp = (socket: Socket): Promise<void> =>
  new Promise(resolve => {
    if (socket.destroyed || socket.readableEnded) return resolve();
    for (const event of ['end', 'close']) socket.once(event, () => resolve());
    socket.resume();
  });

const framed = (message: unknown): string => {
  const text = JSON.stringify({ jsonrpc: '2.0', ...(message as object) });
  return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};

test('invalid messages have no effect on the run or other clients', async () => {
  const watcher = await friend();
  const nonsense = [
    'GET / HTTP/1.1\r\n\r\n',
    'Content-Length: x\r\n\r\n{}',
    'Content-Length: 9\r\n\r\n{"broken:',
    framed({ id: 1, method: 'ragen/hello' }),
  ];
  const sockets = await Promise.all(nonsense.map(mute));
  await until('the last of them is answered', () => sockets.at(-1)!.readableLength > 0);
  server.status({ ...status, step: 4 }, 0);
  await until('the others hear on', () => watcher.statuses.at(-1)?.status.step === 4);
  expect((await watcher.link.sendRequest(pause, null)).state).toBe('paused');
  for (const socket of sockets) socket.destroy();
});

test('a client that does not read is disconnected, and shutdown does not wait for it', async () => {
  const watcher = await friend();
  const socket = await mute(framed({ id: 1, method: 'ragen/hello', params: { token: 'secret' } }));
  await until('it is greeted', () => socket.readableLength > 0);
  const message = 'x'.repeat(1000);
  for (let i = 0; i < 3000; i++) {
    server.event({ time: status.updated, step: i, kind: 'warning', message });
    if (i % 100 === 99) await until('the other has heard it', () => watcher.events.length === i + 1);
  }
  // The connections are closed before the shutdown's time limit, which never elapses here.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  await server.close();
  vi.useRealTimers();
  socket.destroy();
  server = await TrainerServer.listen(endpoint, { id: 'run-1', token: 'secret', control, status: () => status });
});

test('a client that sends endless requests and reads no answer is disconnected', async () => {
  const socket = await mute(framed({ id: 1, method: 'ragen/hello', params: { token: 'secret' } }));
  await until('it is greeted', () => socket.readableLength > 0);
  let gone = false;
  socket.once('close', () => (gone = true)); // the client never reads, so that a write fails
  for (let asked = 0; !gone; asked++) {
    expect(asked).toBeLessThan(10_000);
    socket.write(framed({ id: asked + 2, method: 'ragen/resume', params: null }));
    await new Promise(resolve => setImmediate(resolve)); // requests are answered one at a time
  }
});

test('a client that stops in the middle of a message leaves no timer that keeps the process alive', async () => {
  const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length;
  const half = 'Content-Length: 1000\r\n\r\n{"jsonrpc"';
  const before = timers();
  const stranger = await mute(half);
  const known = await mute(framed({ id: 1, method: 'ragen/hello', params: { token: 'secret' } }) + half);
  await new Promise(resolve => known.resume().once('data', resolve));
  await server.close();
  for (const socket of [stranger, known]) socket.destroy();
  await until('no timer is left', () => timers() <= before);
  server = await TrainerServer.listen(endpoint, { id: 'run-1', token: 'secret', control, status: () => status });
});

test('clients without hello have small limits: many, large or slow ones are disconnected, and others are served', async () => {
  const watcher = await friend();
  const much = await mute(`Content-Length: 1000000\r\n\r\n${'x'.repeat(100_000)}`);
  await hungUp(much);
  const first = await mute('');
  const firstGone = hungUp(first);
  const others = await Promise.all([...Array(30).keys()].map(() => mute('')));
  await firstGone; // its disconnection makes room for another client
  expect(await (await friend()).link.sendRequest(pause, null)).toMatchObject({ state: 'paused' });
  await Promise.all(others.map(hungUp)); // their timeout has elapsed
  expect(await watcher.link.sendRequest(resume, null)).toMatchObject({ state: 'running' });
});

test('an endless message disconnects its client', async () => {
  const socket = await mute(framed({ id: 1, method: 'ragen/hello', params: { token: 'secret' } }));
  const gone = hungUp(socket);
  socket.write('Content-Length: 100000000\r\n\r\n');
  for (let i = 0; i < 100; i++) socket.write('x'.repeat(65_536));
  await gone;
});

test('environments can be debugged from their start until the last debugging client has left or disconnected', async () => {
  const [one, two] = [await friend(), await friend()];
  await expect(one.link.sendRequest(debugEnvironments, null)).rejects.toThrow('are not loaded yet');
  const switched: boolean[] = [];
  const covering: boolean[] = [];
  control.serveEnvironments({
    debug: async on => {
      switched.push(on);
      return on ? ['ws://127.0.0.1:1/x'] : [];
    },
    cover: async on => void covering.push(on),
  });
  await one.link.sendRequest(coverEnvironments, { on: true });
  expect(covering).toEqual([true]);
  expect(await one.link.sendRequest(debugEnvironments, null)).toEqual({ urls: ['ws://127.0.0.1:1/x'] });
  await two.link.sendRequest(debugEnvironments, null);
  expect(await one.link.sendRequest(endDebugging, null)).toMatchObject({ state: 'running' });
  expect(switched).toEqual([true, true]);
  two.close();
  await until('the limits are back', () => switched.length === 3);
  expect(switched.at(-1)).toBe(false);
});
