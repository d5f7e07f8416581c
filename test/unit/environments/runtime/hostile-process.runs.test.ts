// Environment code that attacks the process that it shares with other environments, during or between calls: it writes
// to the channel, stops the process, allocates memory in a timer or in child processes, floods, or spins. Episodes of
// the attacking tag end with a sentence that names the tag; episodes of other tags are unaffected. Memory is measured
// in /proc, so memory limits are tested on Linux only.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { buildEntry, counter, startProcess, workspace } from '../../../support/bundles';

let entry: string;
const open: EnvironmentProcess[] = [];
const files = workspace();
beforeAll(async () => void (entry = await buildEntry()));
afterEach(async () => void (await Promise.all(open.splice(0).map(running => running.stop()))));
afterAll(() => {
  for (const folder of [dirname(entry), files.folder]) rmSync(folder, { recursive: true, force: true });
});

const spec = (tag: string, source: string) => ({ tag, env_type: tag, source, config: {} });
const resets = (tag: string, episodes: readonly string[]) =>
  episodes.map((episode, member) => ({ episode, tag, seed: 7, member, mode: 'train' as const }));
const steps = (episodes: readonly string[], action = 1) => episodes.map(episode => ({ episode, actions: [action] }));

/**
 * Starts a process with the tags Bad and Good and resets their episodes. Bad runs `statement` in steps with action 2.
 */
async function begin(statement: string, options: Parameters<typeof startProcess>[1] = {}, top = '') {
  const started = await startProcess(entry, { stepTimeoutMs: 20_000, ...options });
  open.push(started.running);
  const { running } = started;
  const bad = files.write('bad.ts', counter(`if (action === 2) { ${statement} }`, { top }));
  const { error } = await running.load([spec('Bad', bad), spec('Good', files.write('good.ts', counter()))]);
  expect(error).toBeUndefined();
  await running.reset([...resets('Bad', ['a', 'b']), ...resets('Good', ['g', 'h'])]);
  await running.step(steps(['a', 'b', 'g', 'h']));
  return started;
}

/** Outcome of each episode: its latest observation, or its error message. */
const outcomes = (states: readonly { observation: string; error?: { message: string } }[]) =>
  states.map(({ observation, error }) => error?.message ?? observation);

const linux = process.platform === 'linux';

describe('the channel', () => {
  test.each([
    ['16 bytes of garbage', `writeSync(3, Buffer.alloc(16, 7));`, /sent bytes that do not start a message/],
    [
      'a frame of its own',
      `writeSync(3, Buffer.from('5241474e000000000200000000000000', 'hex'));`,
      /Bad .*in step\(2\)/,
    ],
    ['the channel closed', `closeSync(3);`, /closed its channel|ended its process/],
  ])(
    '%s: the error names the failed episode, and all others continue',
    { timeout: 60_000 },
    async (_, statement, expectedMessage) => {
      const top = `import { closeSync, writeSync } from 'node:fs'; void [closeSync, writeSync];`;
      const { running } = await begin(
        `${statement} for (let end = Date.now() + 400; Date.now() < end;);`,
        { watch: { silentMs: 2000 } },
        top,
      );
      const [a, ...others] = await running.step([...steps(['a'], 2), ...steps(['b', 'g', 'h'])]);
      expect(a.error?.message).toMatch(expectedMessage);
      expect(a.error?.message).toContain('environment Bad');
      expect(outcomes(others)).toEqual(['count 2', 'count 2', 'count 2']);
      expect(outcomes(await running.step(steps(['b', 'g', 'h'])))).toEqual(['count 3', 'count 3', 'count 3']);
    },
  );

  test('an overlong key in an info fails only its episode', async () => {
    const info = `return { observation: 'x', reward: 0, terminated: false, truncated: false, info: { ['k'.repeat(2 ** 28)]: 1 } };`;
    const { running } = await begin(info);
    const played = await running.step([...steps(['a'], 2), ...steps(['b', 'g'])]);
    expect(played[0].error?.message).toMatch(/an invalid info: a key has 268435456 characters/);
    expect(played[0].error!.message.length).toBeLessThan(1000);
    expect(outcomes(played.slice(1))).toEqual(['count 2', 'count 2']);
  });
});

test('a stopped process is killed, and only the episode that stopped it fails', { timeout: 60_000 }, async () => {
  const { running } = await begin(`process.kill(process.pid, 'SIGSTOP'); for (;;);`, {
    watch: { stoppedMs: 300, silentMs: 5000 },
  });
  const [a, ...others] = await running.step([...steps(['a'], 2), ...steps(['b', 'g', 'h'])]);
  expect(a.error).toMatchObject({ kind: 'timed_out' });
  expect(a.error?.message).toMatch(/environment Bad .* its process .*in step\(/);
  expect(outcomes(others)).toEqual(['count 2', 'count 2', 'count 2']);
});

describe.runIf(linux)('memory', () => {
  const memoryBytes = 400 * 2 ** 20;
  /** Plays steps of Good until Bad's first episode has failed. */
  const untilBadFails = async (running: EnvironmentProcess): Promise<string> => {
    for (let played = 1; ; played++, await sleep(20)) {
      if (played % 8 === 0) await running.reset(resets('Good', ['g', 'h']));
      const good = await running.step(steps(['g', 'h']));
      expect(good.map(({ error }) => error)).toEqual([undefined, undefined]);
      const [a] = await running.step([{ episode: 'a', actions: [] }]);
      if (a.error) return a.error.message;
    }
  };

  test(
    'allocated by a timer between calls ends only the tag of the timer, which the error names',
    { timeout: 120_000 },
    async () => {
      const hoard = `const kept: unknown[] = []; setInterval(() => kept.push(new Uint8Array(2 ** 25).fill(1)), 10);`;
      const { running, notices } = await begin(hoard, { memoryBytes });
      await running.step(steps(['a'], 2));
      expect(await untilBadFails(running)).toMatch(
        /environment Bad .*exceeded the memory limit of 400 MiB for environments/,
      );
      await running.closeEpisodes(['a', 'b', 'g', 'h']);
      await running.reset([...resets('Bad', ['c']), ...resets('Good', ['i'])]);
      expect(outcomes(await running.step(steps(['c', 'i'])))).toEqual(['count 1', 'count 1']);
      expect(notices.map(({ text }) => text).join('')).toMatch(/Bad.*exceeded the memory limit/);
    },
  );

  test('of child processes is attributed to the tag that started them', { timeout: 120_000 }, async () => {
    const child = `const kept = []; setInterval(() => kept.push(Buffer.alloc(2 ** 25, 1)), 10); setTimeout(() => process.exit(), 60000)`;
    const spawning = `spawn(process.execPath, ['-e', ${JSON.stringify(child)}], { stdio: 'ignore' });`;
    const { running } = await begin(spawning, { memoryBytes }, `import { spawn } from 'node:child_process';`);
    await running.step(steps(['a'], 2));
    expect(await untilBadFails(running)).toMatch(
      /environment Bad .*exceeded the memory limit of 400 MiB for environments and the processes that they start/,
    );
  });
});

test('code cannot post messages from its thread: the port is unreachable', { timeout: 60_000 }, async () => {
  const top = `import { parentPort } from 'node:worker_threads';`;
  const { running } = await begin(`for (;;) parentPort!.postMessage({ results: 'x' });`, {}, top);
  const [a, ...others] = await running.step([...steps(['a'], 2), ...steps(['b', 'g', 'h'])]);
  expect(a.error?.message).toMatch(/environment Bad .*Cannot read properties of null/);
  expect(outcomes(others)).toEqual(['count 2', 'count 2', 'count 2']);
});

test.runIf(linux)('code that continues to spin after its call timed out is killed', { timeout: 60_000 }, async () => {
  const spin = `return (async () => { for (;;) { for (let end = Date.now() + 40; Date.now() < end;); await new Promise(done => setTimeout(done, 20)); } })() as never;`;
  const { running, notices } = await begin(spin, { stepTimeoutMs: 400 });
  const [a] = await running.step(steps(['a'], 2));
  expect(a.error?.message).toContain('did not return within 400 ms');
  const text = () => notices.map(notice => notice.text).join('');
  await expect.poll(text, { timeout: 20_000 }).toContain('environment Bad');
  expect(text()).toContain('kept its thread busy after a call had timed out');
  expect(outcomes(await running.step(steps(['b', 'g'])))).toEqual(['count 2', 'count 2']);
});

test.runIf(linux)(
  'after a tag ends its process between calls, a new process continues all episodes',
  { timeout: 60_000 },
  async () => {
    const { running } = await begin(`setInterval(() => process.kill(process.pid, 'SIGKILL'), 150);`);
    await running.step(steps(['a'], 2));
    const pids = new Set<number | undefined>();
    for (let played = 2; pids.size < 3; played = (played % 9) + 1, await sleep(20)) {
      if (played === 1) await running.reset(resets('Good', ['g', 'h']));
      expect(outcomes(await running.step(steps(['g', 'h'])))).toEqual(Array(2).fill(`count ${played}`));
      pids.add(running.pid);
    }
    expect(outcomes(await running.step([{ episode: 'a', actions: [] }]))).toEqual(['count 2']);
    await running.stop();
    expect(left(files.folder)).toEqual([]);
  },
);

/** Ids of processes whose command line contains the folder. */
function left(folder: string): string[] {
  return readdirSync('/proc').filter(name => {
    try {
      return (
        Number(name) !== process.pid &&
        /^\d+$/.test(name) &&
        readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(folder)
      );
    } catch {
      return false;
    }
  });
}
