// Asynchronous work that environment code leaves running. If an un-awaited promise or callback throws, only the episode
// that created it fails, whichever call runs at that time; later replays cause no failure. Also changes to the returned
// objects and to the globals that the worker uses.
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { EnvironmentNotice, EpisodeStep } from '../../../../../extension/protocol/environment-link';
import type { EnvironmentProcess } from '../../../../../extension/environments/client/environment-process';
import { buildEntry, counter, startProcess, workspace } from '../../../../support/bundles';

let entry: string;
let running: EnvironmentProcess;
let notices: EnvironmentNotice[];
let files: ReturnType<typeof workspace>;

beforeAll(async () => {
  entry = await buildEntry();
  ({ running, notices } = await startProcess(entry, { stepTimeoutMs: 20_000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(dirname(entry), { recursive: true, force: true });
});
beforeEach(() => {
  files = workspace();
  notices.length = 0;
});
afterEach(() => rmSync(files.folder, { recursive: true, force: true }));

const ids = ['a', 'b', 'c', 'd'];
/** Resets four members; member 1 runs `bad` in its step Bad. */
async function begin(bad: string, more: Parameters<typeof counter>[1] = {}): Promise<void> {
  const text = counter(`if (member === 1 && action === 2) { ${bad} }`, {
    ...more,
    reset: `member = options.member ?? 0; ${more.reset ?? ''}`,
  }).replace(
    'let seed = 0;',
    'let seed = 0; let member = 0; const late = new Promise<void>(done => setTimeout(done, 20));',
  );
  const { error } = await running.load([
    { tag: 'Bad', env_type: 'bad.ts', source: files.write('bad.ts', text), config: {} },
  ]);
  expect(error).toBeUndefined();
  const begun = await running.reset(
    ids.map((episode, member) => ({ episode, tag: 'Bad', seed: 7, member, mode: 'train' })),
  );
  expect(begun.map(state => state.error)).toEqual(ids.map(() => undefined));
}
const play = (action: number) => running.step(ids.map(episode => ({ episode, actions: [action] })));
/** Steps until episode b fails, and returns the states of that step; throws after 200 steps. */
async function untilFailed(): Promise<EpisodeStep[]> {
  for (let tries = 0; tries < 200; tries++, await sleep(5)) {
    const states = await running.step(ids.map(episode => ({ episode, actions: [1] })));
    if (states[1].error) return states;
    if (states[0].observation === 'count 9') await begin('');
  }
  throw new Error('nothing failed');
}
const failedAlone = (states: EpisodeStep[], message: RegExp) => {
  expect(states[1].error?.message).toMatch(message);
  expect(states.map(({ error }) => error !== undefined)).toEqual([false, true, false, false]);
};

test.each([
  ['an async function that rejects at once', `void (async () => { throw new Error('stray'); })();`],
  [
    'a promise chain',
    `void Promise.resolve().then(() => Promise.resolve()).then(() => { throw new Error('stray'); });`,
  ],
  ['a microtask', `queueMicrotask(() => { throw new Error('stray'); });`],
  ['a tick', `process.nextTick(() => { throw new Error('stray'); });`],
])('fails the step that created it: %s', async (_, bad) => {
  await begin(bad);
  failedAlone(
    await play(2),
    /^environment Bad \(.*bad\.ts:\d+\) threw "stray" in a promise or callback that it does not await in step\((Bad)?\) at seed 7, member 1 .*: await the promise, or catch the error$/,
  );
  failedAlone(await play(1), /stray/);
});

test('endless microtasks fail only the episode that created them', async () => {
  const shared = { running, notices };
  ({ running, notices } = await startProcess(entry, { stepTimeoutMs: 2000 }));
  try {
    await begin(`const again = () => void Promise.resolve().then(again); again();`);
    failedAlone(await play(2), /did not return within 2000 ms in step\(Bad\) at seed 7, member 1 /);
    failedAlone(await play(1), /did not return/);
  } finally {
    await running.stop();
    ({ running, notices } = shared);
  }
}, 120_000);

test.each([
  ['a promise', `void (async () => { await late; await null; throw new Error('stray'); })();`],
  ['a timer', `setTimeout(() => { throw new Error('stray'); }, 20);`],
  [
    'an event',
    `const events = new (require('node:events'))(); setTimeout(() => events.emit('error', new Error('stray')), 20);`,
  ],
  ['a file', `require('node:fs').readFile('/nowhere', () => { throw new Error('stray'); });`],
  ['an exit', `setTimeout(() => process.exit(3), 20);`],
])('fails a later step of the episode that created it: %s', async (_, bad) => {
  await begin(bad);
  await play(2).then(async states => failedAlone(states[1].error ? states : await untilFailed(), /stray|exit code 3/));
  const after = await play(1);
  failedAlone(after, /member 1/);
});

test('fails the episode that created it while another waits', async () => {
  const wait = `if (member === 2) return new Promise(done => setTimeout(() => done({ observation: 'count 1', reward: 0, terminated: false, truncated: false, info: {} }), 100));`;
  await begin(`setTimeout(() => { throw new Error('stray'); }, 20); return new Promise(() => {});`, {
    top: `const wait = 1; void wait;`,
  });
  failedAlone(await play(2), /threw "stray".* member 1/);
  const text = counter(`${wait} if (member === 1) setTimeout(() => { throw new Error('stray'); }, 20);`, {
    reset: 'member = options.member ?? 0;',
  }).replace('let seed = 0;', 'let seed = 0; let member = 0;');
  await running.closeEpisodes(ids);
  const { error } = await running.load([
    { tag: 'Bad', env_type: 'bad.ts', source: files.write('bad.ts', text), config: {} },
  ]);
  expect(error).toBeUndefined();
  await running.reset(ids.map((episode, member) => ({ episode, tag: 'Bad', seed: 7, member, mode: 'train' })));
  const first = await play(1);
  failedAlone(first[1].error ? first : await play(1), /threw "stray"/);
});

test('is logged with the member if its episode has ended', async () => {
  await begin(`setTimeout(() => { throw new Error('stray'); }, 30);`);
  await play(2);
  await running.closeEpisodes(ids);
  await expect
    .poll(() => notices.map(notice => ('text' in notice ? notice.text : '')).join(''))
    .toMatch(/member 1, threw "stray".*after its end/);
  await begin('');
  expect((await play(2)).map(({ error }) => error)).toEqual(ids.map(() => undefined));
});

test('does not fail again when the others are rebuilt for another reason', async () => {
  const impatient = await startProcess(entry);
  const text = counter(
    `if (member === 1 && action === 2) void (async () => { throw new Error('stray'); })(); if (member === 3 && action === 2) for (;;);`,
    { reset: 'member = options.member ?? 0;' },
  ).replace('let seed = 0;', 'let seed = 0; let member = 0;');
  const source = files.write('bad.ts', text);
  await impatient.running.load([{ tag: 'Bad', env_type: 'bad.ts', source, config: {} }]);
  await impatient.running.reset(
    ids.map((episode, member) => ({ episode, tag: 'Bad', seed: 7, member, mode: 'train' })),
  );
  const observed = async (action: number) =>
    (await impatient.running.step(ids.map(episode => ({ episode, actions: [action] })))).map(
      ({ error, observation }) => error?.message ?? observation,
    );
  const failed = [
    expect.stringMatching(/threw "stray".* member 1/),
    expect.stringMatching(/did not return .* member 3/),
  ];
  expect(await observed(2)).toEqual(['count 1', failed[0], 'count 1', failed[1]]);
  expect(await observed(1)).toEqual(['count 2', failed[0], 'count 2', failed[1]]);
  await impatient.running.stop();
});

describe('a returned value', () => {
  const step = (changed: string) =>
    `const made: any = { observation: 'fine', reward: 1, terminated: false, truncated: false, info: {} }; ${changed}; return made;`;
  test.each([
    [
      'an array with its own map',
      `const list: any = [1, 2]; list.map = () => { throw new Error('map'); }; list[Symbol.iterator] = list.map; made.info = { list }`,
    ],
    [
      'an array of a class',
      `class List extends Array { map(): any { throw new Error('map'); } static get [Symbol.species](): any { throw new Error('species'); } } const list = new List(); list.push(1, 2); made.info = { list }`,
    ],
    [
      'bytes with their own slice',
      `const list: any = new Uint8Array([1, 2]); list.slice = list.map = () => { throw new Error('slice'); }; Object.defineProperty(list, 'length', { get() { throw new Error('length'); } }); made.info = { list }`,
    ],
    [
      'a toJSON',
      `made.info = { list: [1, 2], more: { toJSON: undefined } }; Object.defineProperty(made.info, 'toJSON', { value() { throw new Error('json'); } })`,
    ],
    ['a key named __proto__', `made.info = JSON.parse('{"list": [1, 2], "__proto__": {"list": 5}}')`],
  ])('%s is copied', async (_, changed) => {
    await begin(step(changed));
    const [, { error, outcomes }] = await play(2);
    expect(error).toBeUndefined();
    expect(Array.from((outcomes[0].info as { list: number[] }).list)).toEqual([1, 2]);
  });

  test.each([
    [
      'a getter that throws',
      `Object.defineProperty(made, 'reward', { get() { throw new Error('trap'); } })`,
      /threw "trap"/,
    ],
    ['an info that throws', `made.info = new Proxy({}, { ownKeys() { throw new Error('trap'); } })`, /threw "trap"/],
    [
      'an error that is a trap',
      `throw new Proxy(new Error('x'), { get() { throw new Error('trap'); }, getPrototypeOf() { throw new Error('trap'); }, has() { throw new Error('trap'); } })`,
      /threw a object that throws|threw/,
    ],
    [
      'an array without end',
      `made.info = { list: new Proxy([], { get: (list, key) => key === 'length' ? 2 ** 31 : 1 }) }`,
      /more than 1048576/,
    ],
    ['a thenable that throws', `return { get then() { throw new Error('trap'); } } as any`, /threw "trap"/],
    ['a key without end', `made.info = { ['k'.repeat(2 ** 22)]: 1 }`, /a key has 4194304 characters, more than 4096/],
    [
      'an observation with a getter per read',
      `let reads = 0; made.observation = { get text() { return reads++ === 0 ? 5 : 'fine'; } }`,
      /observation/,
    ],
  ])('%s fails its own episode', async (_, changed, message) => {
    await begin(step(changed));
    failedAlone(await play(2), message);
    expect((await play(1)).map(({ observation }) => observation)).toEqual([
      'count 2',
      expect.anything(),
      'count 2',
      'count 2',
    ]);
  });
});

test.each([
  [
    'Array.prototype',
    `Array.prototype.map = Array.prototype.push = Array.prototype.shift = (() => { throw new Error('broken'); }) as any;`,
  ],
  ['Map.prototype', `Map.prototype.get = Map.prototype.set = (() => { throw new Error('broken'); }) as any;`],
  ['Promise.prototype', `Promise.prototype.then = (() => { throw new Error('broken'); }) as any;`],
  [
    'Object.prototype',
    `for (const key of ['then', 'fault', 'observation', 'get', '0']) Object.defineProperty(Object.prototype, key, { get() { throw new Error('broken'); } });`,
  ],
  ['iterators', `Object.getPrototypeOf([][Symbol.iterator]()).next = () => { throw new Error('broken'); };`],
  [
    'timers',
    `globalThis.setTimeout = globalThis.setImmediate = globalThis.clearTimeout = (() => { throw new Error('broken'); }) as any;`,
  ],
  [
    'JSON and Atomics',
    `JSON.stringify = (() => { throw new Error('broken'); }) as any; Atomics.store = Atomics.add = (() => 0) as any;`,
  ],
  ['process events', `process.emit = (() => { throw new Error('broken'); }) as any; process.removeAllListeners();`],
  [
    'the port',
    `const { parentPort, MessagePort, workerData } = require('node:worker_threads'); workerData?.progress; MessagePort.prototype.postMessage = () => { throw new Error('broken'); }; parentPort.removeAllListeners(); parentPort.close(); parentPort.postMessage({ results: [] });`,
  ],
])('changes of %s affect no other episode', async (_, bad) => {
  await begin(bad);
  const others = (states: EpisodeStep[]) =>
    states.filter((_, i) => i !== 1).map(({ error, observation }) => error?.message ?? observation);
  expect(others(await play(2))).toEqual(['count 1', 'count 1', 'count 1']);
  expect(others(await play(1))).toEqual(['count 2', 'count 2', 'count 2']);
});
