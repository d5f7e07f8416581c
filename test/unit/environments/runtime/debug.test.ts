// A debugger attached to the environment process. A breakpoint in the user's .ts file pauses only the environment's
// thread, the paused step exceeds no time limit, and limits apply again after the debugger detaches. The test uses the
// inspector protocol, as editors do.
import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { DebuggerRelay } from '../../../../extension/environments/runtime/debugger-relay';
import { counter, root, workspace } from '../../../support/bundles';
import { reinterpret } from '../../../support/partial';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const last of undo.splice(0).reverse()) await last();
});

interface Message {
  id?: number;
  method?: string;
  params?: Record<string, never>;
  result?: Record<string, unknown>;
}

/** Attaches to the worker thread with that title, through the process's inspector. */
async function attach(url: string, title: string) {
  const socket = new WebSocket(url);
  undo.push(() => socket.terminate());
  await new Promise(resolve => socket.once('open', resolve));
  const received: Message[] = [];
  let session = '';
  let ids = 0;
  socket.on('message', (data: Buffer) => {
    const { method, params = {} } = JSON.parse(data.toString('utf8')) as {
      method?: string;
      params?: Record<string, never>;
    };
    if (method === 'NodeWorker.attachedToWorker' && (params.workerInfo as { title: string }).title.includes(title))
      session = params.sessionId;
    if (method === 'NodeWorker.receivedMessageFromWorker' && params.sessionId === session)
      received.push(JSON.parse(params.message) as Message);
  });
  const send = (method: string, params: object) => socket.send(JSON.stringify({ id: ++ids, method, params }));
  send('NodeWorker.enable', { waitForDebuggerOnStart: false });
  await expect.poll(() => session).not.toBe('');
  const until = async (fits: (message: Message) => boolean | undefined): Promise<Message> => {
    await expect.poll(() => received.some(fits), { timeout: 10_000 }).toBe(true);
    return received.find(fits)!;
  };
  return {
    socket,
    until,
    received,
    async ask(method: string, params = {}) {
      const id = ++ids;
      send('NodeWorker.sendMessageToWorker', { sessionId: session, message: JSON.stringify({ id, method, params }) });
      return (await until(message => message.id === id)).result!;
    },
  };
}

test('a breakpoint in the source pauses the environment; no limits apply until the debugger detaches', async () => {
  const running = await EnvironmentProcess.start({
    entry: join(root, 'dist/environment-host.cjs'),
    variables: process.env,
    stepTimeoutMs: 500,
    onNotice: () => undefined,
  });
  undo.push(() => running.stop());
  const { folder, write } = workspace();
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const text = counter('if (action === 2) for (;;);');
  const source = write('env.ts', text);
  await running.load([{ tag: 'Lake', env_type: 'env.ts', source, config: {} }]);
  await running.reset([{ episode: 'a', tag: 'Lake', seed: 1, member: 0, mode: 'train' }]);

  const [url] = await running.debug(true);
  expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\//);
  expect(await running.debug(true)).toEqual([url]);
  const debug = await attach(url, 'Lake');
  await debug.ask('Debugger.enable');
  const parsed = await debug.until(
    ({ method, params }) =>
      method === 'Debugger.scriptParsed' &&
      (params!.url as string).startsWith(pathToFileURL(join(folder, 'env.')).href),
  );
  const { scriptId, sourceMapURL } = reinterpret<{ scriptId: string; sourceMapURL: string }>(parsed.params);
  const map = new TraceMap(Buffer.from(sourceMapURL.split('base64,')[1], 'base64').toString('utf8'));
  const { scriptSource } = (await debug.ask('Debugger.getScriptSource', { scriptId })) as { scriptSource: string };
  const line = scriptSource.split('\n').findIndex(code => code.includes('count++'));
  const column = scriptSource.split('\n')[line].indexOf('count++');
  expect(originalPositionFor(map, { line: line + 1, column })).toMatchObject({
    source: 'env.ts',
    line: text.split('\n').findIndex(code => code.includes('count++')) + 1,
  });
  await debug.ask('Debugger.setBreakpoint', { location: { scriptId, lineNumber: line, columnNumber: column } });

  let done = false;
  const step = running.step([{ episode: 'a', actions: [1] }]).then(steps => {
    done = true;
    return steps;
  });
  const paused = await debug.until(({ method }) => method === 'Debugger.paused');
  // eslint-disable-next-line no-restricted-syntax -- more than two of the limits that the halted step must outlast
  await sleep(1200);
  expect(done).toBe(false);
  const [{ callFrameId }] = reinterpret<{ callFrames: { callFrameId: string }[] }>(paused.params).callFrames;
  const seen = await debug.ask('Debugger.evaluateOnCallFrame', { callFrameId, expression: 'count' });
  expect(seen.result).toMatchObject({ value: 0 });
  await debug.ask('Debugger.resume');
  expect((await step)[0]).toMatchObject({ observation: 'count 1' });

  expect(await running.debug(false)).toEqual([]);
  await expect.poll(() => debug.socket.readyState).toBe(WebSocket.CLOSED);
  const [slow] = await running.step([{ episode: 'a', actions: [2] }]);
  expect(slow.error).toMatchObject({ kind: 'timed_out' });
});

test('debuggers find the process by its port; web pages of other hosts are refused', async () => {
  const relay = await DebuggerRelay.open();
  undo.push(() => relay.close());
  const { host, port } = new URL(relay.url);
  const listed = (await (await fetch(`http://${host}/json/list`)).json()) as { webSocketDebuggerUrl: string }[];
  expect(listed.map(target => target.webSocketDebuggerUrl)).toEqual([relay.url]);

  const status = await new Promise(resolve =>
    get({ host: '127.0.0.1', port, path: '/json/list', headers: { host: 'example.com' } }, reply => {
      resolve(reply.statusCode);
      reply.resume();
    }),
  );
  expect(status).toBe(400);
  const otherPath = new WebSocket(`ws://${host}/other`);
  const [error] = (await once(otherPath, 'error')) as [Error];
  expect(error.message).toContain('400');
});

test('detaching while a call is halted lets the call continue; the halt counts towards no time limit', async () => {
  const limit = 5000; // long enough for a slow machine to open the inspector
  const running = await EnvironmentProcess.start({
    entry: join(root, 'dist/environment-host.cjs'),
    variables: process.env,
    stepTimeoutMs: limit,
    onNotice: () => undefined,
  });
  undo.push(() => running.stop());
  const { folder, write } = workspace();
  undo.push(() => rmSync(folder, { recursive: true, force: true }));
  const flag = join(folder, 'go');
  const waits = `if (action === 2) await new Promise(() => undefined);
        while (!existsSync(${JSON.stringify(flag)})) await new Promise(resolve => setTimeout(resolve, 10));`;
  const text = counter(waits, { top: "import { existsSync } from 'node:fs';" }).replace(
    'step(action) {',
    'async step(action) {',
  );
  const source = write('env.ts', text);
  await running.load([{ tag: 'Lake', env_type: 'env.ts', source, config: {} }]);
  const episodes = ['a', 'b'].map(episode => ({ episode, tag: 'Lake', seed: 1, member: 0, mode: 'train' as const }));
  await running.reset(episodes);

  const begunBefore = running.step([{ episode: 'a', actions: [1] }]);
  const [url] = await running.debug(true);
  const debug = await attach(url, 'Lake');
  await debug.ask('Debugger.enable');
  const parsed = await debug.until(
    ({ method, params }) =>
      method === 'Debugger.scriptParsed' &&
      (params!.url as string).startsWith(pathToFileURL(join(folder, 'env.')).href),
  );
  const { scriptId } = reinterpret<{ scriptId: string }>(parsed.params);
  const { scriptSource } = (await debug.ask('Debugger.getScriptSource', { scriptId })) as { scriptSource: string };
  const lineNumber = scriptSource.split('\n').findIndex(code => code.includes('count++'));
  await debug.ask('Debugger.setBreakpoint', { location: { scriptId, lineNumber, columnNumber: 0 } });
  const neverReturns = running.step([{ episode: 'b', actions: [2] }]);
  writeFileSync(flag, '');
  await debug.until(({ method }) => method === 'Debugger.paused');
  // eslint-disable-next-line no-restricted-syntax -- longer than the limit that the halted call must outlast
  await sleep(limit + 500);

  debug.socket.terminate();
  expect(await running.debug(false)).toEqual([]);
  const continues = begunBefore.then(() => 'continues');
  expect(await Promise.race([continues, neverReturns.then(() => 'time limit')])).toBe('continues');
  const [continued] = await begunBefore;
  expect(continued.error).toBeUndefined();
  expect(continued).toMatchObject({ observation: 'count 1' });
  // The time limit applies again, also to a call that began while the debugger was attached. The breakpoint is gone.
  expect((await neverReturns)[0].error).toMatchObject({ kind: 'timed_out' });
  expect((await running.step([{ episode: 'a', actions: [1] }]))[0]).toMatchObject({ observation: 'count 2' });
});
