// Waiting calls overlap, each with its own time limit, and requests overlap as well. A slow or failing call delays and
// ends only its own episode, and results are reported as they become ready.
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { buildEntry, counter, startProcess, workspace } from '../../../support/bundles';

let entry: string;
let files: ReturnType<typeof workspace>;
const open: EnvironmentProcess[] = [];

beforeAll(async () => {
  entry = await buildEntry();
  files = workspace();
});
afterEach(async () => void (await Promise.all(open.splice(0).map(running => running.stop()))));
afterAll(() => [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true })));

/** Starts a process with the environment, whose actions are texts, and its episodes e0, e1, … */
async function playing(step: string, episodes: number, { top = '', stepTimeoutMs = 3000 } = {}) {
  const { running } = await startProcess(entry, { stepTimeoutMs });
  open.push(running);
  const text = counter(step, { top })
    .replace(`actions: { 1: 'Add', 2: 'Bad' },`, '')
    .replace('step(action)', 'async step(action)');
  const source = files.write(`env-${Math.random()}.ts`, text);
  const { error } = await running.load([{ tag: 'T', env_type: 'T', source, config: {} }]);
  expect(error).toBeUndefined();
  const ids = Array.from({ length: episodes }, (_, i) => `e${i}`);
  await running.reset(ids.map((episode, member) => ({ episode, tag: 'T', seed: 7, member, mode: 'train' })));
  return {
    running,
    ids,
    all: (action: (i: number) => string) => ids.map((episode, i) => ({ episode, actions: [action(i)] })),
  };
}
const sleep = `const wait = ms => new Promise(done => setTimeout(done, ms));`;
/** Waits for as many milliseconds as the action's value. */
const waiting = `if (action > 0) await wait(Number(action));`;

test('up to 64 waiting calls overlap, and results are in the order of the request', async () => {
  const top = `${sleep} let inside = 0, most = 0;`;
  const step = `most = Math.max(most, ++inside); await wait(Number(action)); inside--; if (action === '1') count = most;`;
  const { running, all } = await playing(step, 100, { top });
  const steps = await running.step(all(i => String(300 - i)));
  expect(steps.map(({ episode }) => episode)).toEqual(Array.from({ length: 100 }, (_, i) => `e${i}`));
  expect(steps.every(({ observation }) => observation === 'count 1')).toBe(true);
  const [last] = await running.step([{ episode: 'e0', actions: ['1'] }]);
  expect(last.observation).toBe('count 65'); // `most`, plus the step itself
});

test('a call that waits too long or fails late ends only its own episode; the worker and the others continue', async () => {
  const top = `${sleep} const born = Math.random();`;
  const step = `if (action === 'never') await new Promise(() => {}); if (action === 'late') { await wait(50); throw new Error('late'); } ${waiting}`;
  const text = { top, stepTimeoutMs: 1500 };
  const { running, all } = await playing(`count = born; ${step}`, 4, text);
  const before = await running.step([{ episode: 'e0', actions: ['0'] }]);
  const [a, b, c, d] = await running.step(all(i => ['never', 'late', '900', '0'][i]));
  expect(a.error).toMatchObject({
    kind: 'timed_out',
    message: expect.stringContaining('did not return within 1500 ms in step("never")'),
  });
  expect(b.error).toMatchObject({ kind: 'threw', message: expect.stringContaining('threw "late"') });
  expect([c.error, d.error]).toEqual([undefined, undefined]);
  expect([c.observation, d.observation]).toEqual([before[0].observation, before[0].observation]); // the same worker
});

test('each action of an episode has the full limit', async () => {
  const { running } = await playing(waiting, 1, { top: sleep, stepTimeoutMs: 1000 });
  const [step] = await running.step([{ episode: 'e0', actions: ['600', '600', '600'] }]);
  expect([step.error, step.outcomes.length]).toEqual([undefined, 3]);
});

test.each([
  ['blocks', 'for (;;);', 'timed_out', 'did not return within 1000 ms in step("bad")'],
  ['ends the thread', 'process.exit(5);', 'died', 'ended its thread with exit code 5 in step("bad")'],
])(
  'one of several waiting calls that %s after waiting is identified, and the others are rebuilt',
  async (_, fault, kind, message) => {
    const step = `if (action === 'bad') { await wait(100); ${fault} } ${waiting}`;
    const { running, all } = await playing(step, 5, { top: sleep, stepTimeoutMs: 1000 });
    await running.step(all(() => '0'));
    const steps = await running.step(all(i => (i === 2 ? 'bad' : '200')));
    expect(steps[2].error).toMatchObject({ kind, message: expect.stringContaining(message) });
    for (const i of [0, 1, 3, 4])
      expect(steps[i]).toMatchObject({ observation: 'count 2', outcomes: [{ info: { count: 2 } }] });
    const next = await running.step(all(() => '0'));
    expect(next.map(({ observation }) => observation)).toEqual(['count 3', 'count 3', 'count 1', 'count 3', 'count 3']);
  },
);

test('a request waits only for requests on its own episodes', async () => {
  const { running } = await playing(waiting, 2, { top: sleep });
  const order: string[] = [];
  const step = (episode: string, ms: string) =>
    running.step([{ episode, actions: [ms] }]).then(([{ observation }]) => order.push(`${episode} ${observation}`));
  const close = () => running.closeEpisodes(['e0']).then(() => order.push('closed'));
  await Promise.all([step('e0', '500'), step('e1', '0'), step('e0', '0'), close(), step('e1', '0')]);
  expect(order).toEqual(['e1 count 1', 'e1 count 2', 'e0 count 1', 'e0 count 2', 'closed']);
});

test('ready results are reported before slow ones, each once', async () => {
  const { running, all } = await playing(waiting, 8, { top: sleep });
  const reported: string[][] = [];
  const steps = await running.step(
    all(i => (i === 3 ? '600' : '0')),
    ready => reported.push(ready.map(({ episode }) => episode)),
  );
  expect(reported).toEqual([['e0', 'e1', 'e2', 'e4', 'e5', 'e6', 'e7'], ['e3']]);
  expect(steps.map(({ episode, observation }) => `${episode} ${observation}`)).toContain('e3 count 1');
});

test('after the death of a process, each pending request is executed once', async () => {
  const mark = JSON.stringify(join(files.folder, 'mark'));
  const top = `${sleep} import { existsSync, writeFileSync } from 'node:fs';`;
  const kill = `if (action === 'kill' && !existsSync(${mark})) { await wait(400); writeFileSync(${mark}, ''); process.kill(process.pid, 'SIGKILL'); for (;;); }`;
  const { running } = await playing(`${kill} if (action !== 'kill') ${waiting}`, 3, { top });
  const reported: string[] = [];
  const fast = running.step(
    [
      { episode: 'e0', actions: ['0'] },
      { episode: 'e1', actions: ['900'] },
    ],
    ready => reported.push(...ready.map(({ episode }) => episode)),
  );
  const [steps, [killer]] = await Promise.all([fast, running.step([{ episode: 'e2', actions: ['kill'] }])]);
  expect([...steps, killer].map(({ observation, error }) => [observation, error])).toEqual(
    [1, 2, 3].map(() => ['count 1', undefined]),
  );
  expect(reported).toEqual(['e0', 'e1']);
  const [next] = await running.step([{ episode: 'e0', actions: ['0'] }]);
  expect(next.observation).toBe('count 2');
});
