// Lifecycle of the environment process: built-in environments run in it, code changes between episodes, and a dead
// process is rebuilt without effect on episodes. All its child processes end with it.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { buildEntry, counter, root, startProcess, workspace } from '../../../support/bundles';

let entry: string;
const open: EnvironmentProcess[] = [];
const folders: string[] = [];

beforeAll(async () => void (entry = await buildEntry()));
afterAll(() => {
  for (const folder of [dirname(entry), ...folders]) rmSync(folder, { recursive: true, force: true });
});
afterEach(async () => void (await Promise.all(open.splice(0).map(running => running.stop()))));

async function start(options: Parameters<typeof startProcess>[1] = {}) {
  const started = await startProcess(entry, options);
  open.push(started.running);
  return started;
}
function files() {
  const made = workspace();
  folders.push(made.folder);
  return made;
}
const spec = (tag: string, source: string, config: Record<string, unknown> = {}) => ({
  tag,
  env_type: tag,
  source,
  config,
});
const reset = (episode: string, tag = 'T', member = 0) => ({
  episode,
  tag,
  seed: 10005,
  member,
  mode: 'train' as const,
});
/** Whether a process is running. A zombie, which has ended but is not yet reaped by its parent, does not count. */
const alive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};

test('the built-in environments load with their defaults, play and solve', async () => {
  const { running } = await start();
  const { environments, error } = await running.load([
    spec('SimpleSokoban', join(root, 'envs/sokoban/index.ts'), { num_boxes: 1 }),
    spec('FrozenLake', join(root, 'envs/frozen-lake/index.ts'), { is_slippery: false }),
    spec('Bandit', join(root, 'envs/bandit/index.ts')),
  ]);
  expect(error).toBeUndefined();
  expect(environments.map(({ name, has_solver }) => [name, has_solver])).toEqual([
    ['sokoban', true],
    ['frozen_lake', true],
    ['bandit', true],
  ]);
  expect(environments[0]).toMatchObject({
    tag: 'SimpleSokoban',
    config: { dim_room: [6, 6], num_boxes: 1, search_depth: 300, observation_format: 'grid' },
    actions: { 1: 'Up', 2: 'Down', 3: 'Left', 4: 'Right' },
    legend: {
      '#': 'wall',
      _: 'empty',
      O: 'target',
      '√': 'box on target',
      X: 'box',
      P: 'player',
      S: 'player on target',
    },
    version: expect.stringMatching(/^[0-9a-f]{16}$/),
  });
  expect(environments[2].actions).toBeUndefined();
  expect(environments[0].files).toContain(join(root, 'envs/sokoban/room.ts'));
  expect(environments[0].bundle).toContain('sourceMappingURL=data:application/json;base64,');

  const tags = ['SimpleSokoban', 'FrozenLake', 'Bandit'];
  const states = await running.reset(tags.map(tag => reset(tag, tag)));
  expect(states.map(({ version }) => version)).toEqual(environments.map(({ version }) => version));
  expect(states.map(({ actions }) => Object.keys(actions ?? {}))).toEqual([[], [], ['1', '2']]);
  const solutions = await running.solve(tags);
  const steps = await running.step(solutions.map(({ episode, actions }) => ({ episode, actions: actions! })));
  for (const step of steps) expect(step.outcomes.at(-1)).toMatchObject({ terminated: true, info: { success: true } });
  await running.closeEpisodes(tags);
  const [gone] = await running.step([{ episode: 'Bandit', actions: ['x'] }]);
  expect(gone.error?.message).toBe('episode Bandit is unknown: reset it first');
});

test('the version depends on the code, not on its location', async () => {
  const { running } = await start();
  const here = files();
  const there = files();
  for (const { folder } of [here, there]) {
    cpSync(join(root, 'envs/sokoban'), join(folder, 'sokoban'), { recursive: true });
    cpSync(join(root, 'envs/api'), join(folder, 'api'), { recursive: true });
  }
  const other = files().write('bad.ts', counter());
  const { environments } = await running.load([
    spec('A', join(here.folder, 'sokoban/index.ts')),
    spec('B', join(there.folder, 'sokoban/index.ts'), { num_boxes: 1 }),
    spec('C', join(root, 'envs/sokoban/index.ts')),
    spec('D', other),
  ]);
  const [a, b, c, d] = environments.map(({ version }) => version);
  expect([b, c]).toEqual([a, a]);
  expect(d).not.toBe(a);
});

test('changed code serves the next episodes; a running episode keeps its code', async () => {
  const { running } = await start();
  const { write } = files();
  const source = write('counter.ts', counter());
  const first = (await running.load([spec('T', source)])).environments[0];
  await running.reset([reset('old')]);
  write('counter.ts', counter(`count += 10;`));
  const second = (await running.load([spec('T', source)])).environments[0];
  expect(second.version).not.toBe(first.version);
  const [fresh] = await running.reset([reset('new')]);
  expect(fresh.version).toBe(second.version);
  const steps = await running.step([
    { episode: 'old', actions: [1] },
    { episode: 'new', actions: [1] },
  ]);
  expect(steps.map(({ observation, version }) => [observation, version])).toEqual([
    ['count 1', first.version],
    ['count 11', second.version],
  ]);
  expect((await running.load([spec('T', source)])).environments[0]).toEqual(second);
});

test("environment code may import its own files and Node's modules, and read files beside itself", async () => {
  const { running } = await start();
  const { write } = files();
  write('lib/word.ts', `export const word: string = 'lib';`);
  write('data.txt', 'data');
  const top = `import { readFileSync } from 'node:fs';\nimport { join } from 'node:path';\nimport { word } from './lib/word';\nimport { Pcg64 } from 'ragen-workbench/api/random/pcg64';\nconst data = readFileSync(join(__dirname, 'data.txt'), 'utf8') + readFileSync(new URL('data.txt', import.meta.url), 'utf8');`;
  const text = counter('', { top }).replace(`'count ' + count`, `word + data + new Pcg64(1).integers(0, 10)`);
  const { error } = await running.load([spec('T', write('env.ts', text))]);
  expect(error).toBeUndefined();
  await running.reset([reset('a')]);
  const [step] = await running.step([{ episode: 'a', actions: [1] }]);
  expect(step.observation).toMatch(/^libdatadata\d$/);
});

test('ELECTRON_RUN_AS_NODE is not set in the environment process', async () => {
  process.env.ELECTRON_RUN_AS_NODE = '1';
  try {
    const { running } = await start();
    const text = counter().replace(`'count ' + count`, `String(process.env.ELECTRON_RUN_AS_NODE)`);
    await running.load([spec('T', files().write('env.ts', text))]);
    await running.reset([reset('a')]);
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(step.observation).toBe('undefined');
  } finally {
    delete process.env.ELECTRON_RUN_AS_NODE;
  }
});

test('an environment that exhausts memory ends only its own episode', async () => {
  const { running } = await start({ execArgv: ['--max-old-space-size=64'], stepTimeoutMs: 20_000 });
  const eat = `if (action === 2) for (const eaten = []; ; ) eaten.push(new Array(1000).fill(String(eaten.length)));`;
  await running.load([spec('T', files().write('env.ts', counter(eat)))]);
  await running.reset([reset('a'), reset('b')]);
  const [a, b] = await running.step([
    { episode: 'a', actions: [2] },
    { episode: 'b', actions: [1] },
  ]);
  expect(a.error).toMatchObject({ kind: 'died', message: expect.stringContaining('ran out of memory in step(Bad)') });
  expect(b).toMatchObject({ observation: 'count 1' });
});

describe('a dying process', () => {
  test('between requests is rebuilt with its state before the next request', async () => {
    const { running } = await start();
    await running.load([spec('T', files().write('env.ts', counter()))]);
    await running.reset([reset('a'), reset('b', 'T', 1)]);
    await running.step([{ episode: 'a', actions: [1, 1, 1] }]);
    process.kill(running.pid!, 'SIGKILL');
    const steps = await running.step([
      { episode: 'a', actions: [1] },
      { episode: 'b', actions: [1, 1] },
    ]);
    expect(steps.map(({ observation, error }) => [observation, error])).toEqual([
      ['count 4', undefined],
      ['count 2', undefined],
    ]);
  });

  test('during a request is replaced, and the new one executes the request', async () => {
    const { running } = await start();
    const { folder, write } = files();
    const mark = JSON.stringify(join(folder, 'mark'));
    const kill = `if (action === 2 && !existsSync(${mark})) { writeFileSync(${mark}, ''); process.kill(process.pid, 'SIGKILL'); for (;;); }`;
    const top = `import { existsSync, writeFileSync } from 'node:fs';`;
    await running.load([spec('T', write('env.ts', counter(kill, { top })))]);
    await running.reset([reset('a')]);
    await running.step([{ episode: 'a', actions: [1, 1] }]);
    const [step] = await running.step([{ episode: 'a', actions: [2] }]);
    expect(step).toMatchObject({ observation: 'count 3' });
    expect(step.error).toBeUndefined();
  });

  test('that dies repeatedly because of one episode fails only that episode, which the error names', async () => {
    const { running } = await start();
    const kill = `if (action === 2) { process.kill(process.pid, 'SIGKILL'); for (;;); }`;
    const source = files().write('env.ts', counter(kill));
    await running.load([spec('T', source)]);
    await running.reset([reset('a'), reset('b', 'T', 1), reset('c', 'T', 2)]);
    await running.step([{ episode: 'a', actions: [1] }]);
    const others = running.step([{ episode: 'c', actions: [1, 1] }]); // another request, which runs meanwhile
    const [a, b] = await running.step([
      { episode: 'a', actions: [1, 2] },
      { episode: 'b', actions: [1] },
    ]);
    expect(a.error).toEqual({
      kind: 'died',
      at: source,
      message: `environment T (${source}) ended its process (ended by signal SIGKILL) in step(1, 2) at seed 10005, member 0 after 1 actions: throw an error instead of ending the process, or look for native code that fails`,
    });
    expect([b.observation, (await others)[0].observation]).toEqual(['count 1', 'count 2']);
    await running.reset([reset('a')]);
    expect((await running.step([{ episode: 'a', actions: [1] }]))[0].observation).toBe('count 1');
  });

  test('while new code is loaded refuses that code, and the running code continues', async () => {
    const { running } = await start();
    const { write } = files();
    const source = write('env.ts', counter());
    await running.load([spec('T', source)]);
    await running.reset([reset('a')]);
    write('env.ts', counter('', { top: `process.kill(process.pid, 'SIGKILL');` }));
    const [prepared] = await running.prepare([spec('T', source)], false);
    expect('problems' in prepared && prepared.problems[0].message).toBe(
      `environment T (${source}) ends its process while it is loaded (ended by signal SIGKILL): fix the file and save it`,
    );
    expect((await running.step([{ episode: 'a', actions: [1] }]))[0].observation).toBe('count 1');
  });

  test('whose code no longer loads fails its episodes with the reason until the code loads again', async () => {
    const { running } = await start();
    const { folder, write } = files();
    const mark = join(folder, 'server-is-down');
    const top = `import { existsSync } from 'node:fs';\nif (existsSync(${JSON.stringify(mark)})) throw new Error('no server');`;
    await running.load([spec('T', write('env.ts', counter('', { top })))]);
    await running.reset([reset('a')]);
    write('server-is-down', '');
    process.kill(running.pid!, 'SIGKILL');
    const [lost] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(lost.error?.message).toContain('threw "no server"');
    rmSync(mark);
    await running.reset([reset('b')]);
    expect((await running.step([{ episode: 'b', actions: [1] }]))[0].observation).toBe('count 1');
  });

  test('continues an episode with the code it started with, although the file has changed', async () => {
    const { running } = await start();
    const { write } = files();
    const source = write('env.ts', counter());
    await running.load([spec('T', source)]);
    await running.reset([reset('a')]);
    write('env.ts', 'this is no environment');
    process.kill(running.pid!, 'SIGKILL');
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    expect(step).toMatchObject({ observation: 'count 1' });
    expect(step.error).toBeUndefined();
  });

  test('continues each episode with the code it started with after several code changes', async () => {
    const { running } = await start();
    const { write } = files();
    const source = write('env.ts', counter());
    await running.load([spec('T', source)]);
    await running.reset([reset('a')]);
    const edit = async (step: string) => {
      write('env.ts', counter(step));
      const [prepared] = await running.prepare([spec('T', source)], false);
      if (!('environment' in prepared)) throw new Error(prepared.problems[0].message);
      await running.use([{ spec: spec('T', source), environment: prepared.environment }]);
    };
    await edit('count += 10;');
    await running.reset([reset('b')]);
    await running.step([{ episode: 'b', actions: [1] }]);
    await edit('count += 100;');
    process.kill(running.pid!, 'SIGKILL');
    const steps = await running.step(['a', 'b'].map(episode => ({ episode, actions: [1] })));
    expect(steps.map(({ error, observation }) => [error, observation])).toEqual([
      [undefined, 'count 1'],
      [undefined, 'count 22'],
    ]);
    await running.reset([reset('c')]);
    expect((await running.step([{ episode: 'c', actions: [1] }]))[0].observation).toBe('count 101');
  });
});

describe('the end of the process', () => {
  test('kills child processes of environments, with one promise for all stop calls', async () => {
    const { running } = await start();
    const top = `import { spawn } from 'node:child_process';`;
    const text = counter(
      `count = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' }).pid - 1;`,
      { top },
    );
    await running.load([spec('T', files().write('env.ts', text))]);
    await running.reset([reset('a')]);
    const [step] = await running.step([{ episode: 'a', actions: [1] }]);
    const pids = [running.pid!, Number(step.observation.slice('count '.length))];
    expect(pids.map(alive)).toEqual([true, true]);
    const stopped = running.stop();
    expect(running.stop()).toBe(stopped);
    await stopped;
    await expect.poll(() => pids.map(alive)).toEqual([false, false]);
    await expect(running.reset([reset('b')])).rejects.toThrow('environment process: the process was stopped');
  });

  test('aborts a running request', async () => {
    const { running } = await start({ stepTimeoutMs: 60_000 });
    const begun = files().write('begun', '');
    const text = counter(`writeFileSync(${JSON.stringify(begun)}, 'begun'); for (;;);`, {
      top: `import { writeFileSync } from 'node:fs';`,
    });
    await running.load([spec('T', files().write('env.ts', text))]);
    await running.reset([reset('a')]);
    const step = running.step([{ episode: 'a', actions: [1] }]);
    const outcome = expect(step).rejects.toThrow('environment process: the process was stopped');
    await expect.poll(() => readFileSync(begun, 'utf8'), { timeout: 20_000 }).toBe('begun');
    const closed = running.closeEpisodes(['a']); // waits for the step; its caller need not wait for it
    await running.stop();
    await outcome;
    await expect(closed).resolves.toBeUndefined();
  });

  test('ends episodes whose closing was sent', async () => {
    const { running } = await start();
    await running.load([spec('T', files().write('env.ts', counter('')))]);
    await running.reset([reset('a')]);
    const closed = running.closeEpisodes(['a']);
    await running.stop();
    await expect(closed).resolves.toBeUndefined();
  });
});

test.each([
  [
    'a node that is not there',
    { nodePath: '/no/such/node' },
    /\/no\/such\/node could not run .* \(spawn \/no\/such\/node ENOENT\): correct the path of Node\.js/,
  ],
  [
    'an entry that is not there',
    { entry: '/no/such/host.cjs' },
    /could not run \/no\/such\/host\.cjs \(ended with exit code 1; its last output: Error: Cannot find module/,
  ],
])('a start with %s is refused in one sentence', async (_, options, message) => {
  await expect(
    EnvironmentProcess.start({ entry, variables: process.env, stepTimeoutMs: 100, onNotice: () => {}, ...options }),
  ).rejects.toThrow(message);
});
