// The link against a real JSON-RPC server on a file-system socket.
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  SocketMessageReader,
  SocketMessageWriter,
  type MessageConnection,
} from 'vscode-jsonrpc/node';
import { FileRequests } from '../../../../extension/trainer/live/file-requests';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { TrainerClient, type TrainerListener } from '../../../../extension/vscode/processes/trainer-client';
import type { Lease } from '../../../../extension/run-data/lease-file';
import type { RunStatus } from '../../../../extension/run-data/run-status-file';
import {
  appended,
  change,
  hello,
  isLocalEndpoint,
  pause,
  resume,
  statusChanged,
  stop,
} from '../../../../extension/protocol/trainer-link';

const status = (over: Partial<RunStatus>): RunStatus => ({
  state: 'running',
  step: 1,
  total_steps: 4,
  success: null,
  reward: null,
  tokens_per_s: null,
  eta_s: null,
  phase: 'rollout',
  updated: '2026-01-01T00:00:00Z',
  ...over,
});

let folder: string;
let server: Server | undefined;
let sockets: Socket[];
let connections: MessageConnection[];
let lease: Lease | undefined;
let link: TrainerClient;
let received: { [K in keyof TrainerListener]: ReturnType<typeof vi.fn> };

/** Serves like a trainer: greets clients with the token, answers pause. */
async function serve(name: string, token = 'secret') {
  const endpoint = process.platform === 'win32' ? `\\\\.\\pipe\\${name}-${process.pid}` : join(folder, name);
  server = createServer(socket => {
    sockets.push(socket);
    const connection = createMessageConnection(new SocketMessageReader(socket), new SocketMessageWriter(socket));
    connection.onRequest(hello, params => {
      if (params.token !== token) throw new Error('the token is wrong');
      return { run: 'lake', pid: 1, status: status({}) };
    });
    connection.onRequest(change, ({ values, checkOnly }) => {
      if (values.lr < 0) throw new ResponseError(ErrorCodes.InvalidParams, 'lr is -1: use a number ≥ 0');
      return { step: checkOnly ? 0 : 3, changes: [{ key: 'lr', from: 1, to: values.lr }] };
    });
    connection.onRequest(pause, () => status({ state: 'paused' }));
    connection.listen();
    connections.push(connection);
  });
  await new Promise<void>(resolve => server!.listen(endpoint, resolve));
  lease = { pid: 1, started: '2026-01-01T00:00:00Z', endpoint, token: 'secret' };
}

async function unserve() {
  const closed = new Promise(resolve => server?.close(resolve));
  for (const socket of sockets) socket.destroy();
  if (server) await closed;
  server = undefined;
  lease = undefined;
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-link-'));
  [sockets, connections, lease] = [[], [], undefined];
  received = { status: vi.fn(), appended: vi.fn(), event: vi.fn(), problem: vi.fn() };
});
afterEach(async () => {
  link.dispose();
  await unserve();
  rmSync(folder, { recursive: true });
});
/** A long timeout, because other tests may load the machine. */
const eventually = (check: () => void) => vi.waitFor(check, 20_000);
const begin = () => (link = new TrainerClient('lake', 'lake', async () => lease, received));

test('requests setting changes, and passes on the trainer’s refusal unchanged', async () => {
  await serve('settings');
  begin();
  expect(await link.change({ lr: 2 })).toEqual({ step: 3, changes: [{ key: 'lr', from: 1, to: 2 }] });
  expect(await link.change({ lr: 2 }, true)).toMatchObject({ step: 0 });
  await expect(link.change({ lr: -1 })).rejects.toThrow(/^lr is -1: use a number ≥ 0$/);
});

test('greets with the token, reports the status, and carries commands and notices', async () => {
  await serve('a');
  begin();
  await eventually(() => expect(received.status).toHaveBeenCalledWith(expect.objectContaining({ step: 1 }), 0));
  expect((await link.pause()).state).toBe('paused');
  await connections[0].sendNotification(statusChanged, { status: status({ step: 2 }), fraction: 0.5 });
  await connections[0].sendNotification(appended, { file: 'metrics.jsonl', bytes: 10, step: 2 });
  await eventually(() => expect(received.appended).toHaveBeenCalledWith('metrics.jsonl'));
  expect(received.status).toHaveBeenLastCalledWith(expect.objectContaining({ step: 2 }), 0.5);
});

test('a command waits for a trainer that is starting', async () => {
  begin();
  const paused = link.pause();
  await serve('late');
  expect((await paused).state).toBe('paused');
});

test('reconnects to a new trainer after the old one has gone', async () => {
  await serve('first');
  begin();
  await eventually(() => expect(link.connected).toBe(true));
  await unserve();
  await eventually(() => expect(link.connected).toBe(false));
  await serve('second');
  await eventually(() => expect(link.connected).toBe(true));
  expect((await link.pause()).state).toBe('paused');
});

test('a lease without a socket of this machine is not followed', async () => {
  const reached: unknown[] = [];
  const port = createServer(socket => reached.push(socket)).listen(0, '127.0.0.1');
  await new Promise(resolve => port.once('listening', resolve));
  const { port: number } = port.address() as { port: number };
  lease = { pid: 1, started: '2026-01-01T00:00:00Z', endpoint: String(number), token: 'secret' };
  begin();
  await eventually(() =>
    expect(received.problem).toHaveBeenCalledWith(expect.stringContaining('not a socket of this machine')),
  );
  expect(reached).toEqual([]);
  port.close();
  const far = [
    '\\\\evil\\pipe\\x',
    '\\\\evil\\share\\x',
    '8080',
    'evil.example',
    '\\\\.\\pipe\\a\\..\\b',
    '',
    'trainer.sock',
  ];
  for (const endpoint of far)
    expect([endpoint, isLocalEndpoint(endpoint, true), isLocalEndpoint(endpoint, false)]).toEqual([
      endpoint,
      false,
      false,
    ]);
  expect(isLocalEndpoint('\\\\.\\pipe\\ragen-a-1', true)).toBe(true);
  expect(isLocalEndpoint('/w/.ragen/runs/a/trainer.sock', false)).toBe(true);
});

test('a trainer that refuses the token is rejected, and the reason is reported', async () => {
  await serve('strict', 'another');
  begin();
  await eventually(() => expect(received.problem).toHaveBeenCalledWith(expect.stringContaining('the token is wrong')));
  expect(link.connected).toBe(false);
});

test('a trainer that ends before it answers, or refuses, is reported in a sentence', async () => {
  await serve('brief');
  begin();
  await eventually(() => expect(link.connected).toBe(true));
  connections[0].onRequest(stop, () => new Promise<RunStatus>(() => sockets[0].destroy()));
  await expect(link.stop()).rejects.toThrow('run lake: the trainer exited before it replied; see the log of the run');
  await eventually(() => expect(connections).toHaveLength(2));
  connections[1].onRequest(resume, (): RunStatus => {
    throw new Error('the run is not paused');
  });
  await expect(link.resume()).rejects.toThrow(/the run is not paused/);
});

test('disposing the link leaves the trainer running', async () => {
  await serve('quiet');
  begin();
  await eventually(() => expect(link.connected).toBe(true));
  const closed = new Promise(resolve => sockets[0].once('close', resolve));
  link.dispose();
  await closed;
  await expect(link.pause()).rejects.toThrow(/run lake: the trainer does not answer/);
  expect(sockets).toHaveLength(1);
});

test('a trainer on another machine receives commands through the run folder', async () => {
  lease = {
    pid: 1,
    started: '',
    endpoint: join(folder, 'none'),
    token: 't',
    host: 'far',
    boot: 'b',
    pid_namespace: '1',
  };
  const states: string[] = [];
  const control = new RunControl(state => states.push(state));
  const far = new FileRequests(folder, {
    id: 'lake',
    token: 't',
    control,
    status: () => status({ state: control.state }),
  });
  try {
    link = new TrainerClient('lake', folder, async () => lease, received);
    expect((await link.pause()).state).toBe('paused');
    expect((await link.stop()).state).toBe('stopping');
    expect(states).toEqual(['paused', 'stopping']);
    await expect(link.change({ lr: 1 })).rejects.toThrow('the run is not training yet');
    await expect(link.coverEnvironments(true)).rejects.toThrow(
      'run lake: coverage of environments needs a connection to the trainer, which runs on far: open the workspace in an editor on that machine',
    );
    await expect(link.debugEnvironments()).rejects.toThrow('run lake: debugging of environments needs a connection');
  } finally {
    await far.close();
  }
});
