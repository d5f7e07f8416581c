// Misbehaving environment code at each place where the product calls it. An episode fails, an edit is refused, or a
// check fails; the run continues, later episodes are correct, and all child processes end with the environments. Each
// case first runs alone in an environment process; then all cases run repeatedly in a real training run. CI runs the
// first part (test/unit/environments/runtime/bad-code).
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EnvironmentSpec } from '../../extension/protocol/environment-link';
import type { RunEvent } from '../../extension/run-data/run-events';
import { EnvironmentProcess } from '../../extension/environments/client/environment-process';
import { workspace as sourceFolder } from '../support/bundles';
import { childrenOf, isAlive, leaseOf, readRun, startDetached, statusOf } from '../support/terminal';
import { makeWorkspace, root } from '../support/workspace';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Calls in which the environment code misbehaves. */
export const places = ['load', 'create', 'reset', 'step', 'render'] as const;
export type Place = (typeof places)[number];

interface Behaviour {
  /** A function body whose result is returned at the place. `mark` identifies its child processes. */
  code(mark: string): string;
  /** Pattern of the expected error message; null if the code is harmless. */
  errorText: RegExp | null;
  /** Whether the code hangs until the time limit. The limit is short for hanging code and long for other code. */
  hangs?: true;
}

const text = (made: string) => `({ observation: ${made}, reward: 1, terminated: false, truncated: false, info: {} })`;

export const behaviours: Readonly<Record<string, Behaviour>> = {
  throws: { code: () => `throw new Error('boom');`, errorText: /threw "boom"|throws "boom"/ },
  'throws no error': { code: () => `throw null;`, errorText: /threw null|throws null/ },
  rejects: {
    code: () => `return Promise.reject(new Error('late'));`,
    errorText:
      /threw "late"|throws "late"|returned .* from create|has a definition|has no default export|did not return/,
  },
  'never returns': { code: () => `for (;;);`, errorText: /did not return/, hangs: true },
  'waits for ever': {
    code: () => `return new Promise(() => {});`,
    hangs: true,
    errorText: /did not return|returned .* from create|has a definition|ended its thread/,
  },
  'throws later': {
    code: () => `setTimeout(() => { throw new Error('stray'); }); return new Promise(() => {});`,
    errorText: /threw "stray"|returned .* from create|has a definition|ended its thread/,
  },
  'forgets an await': {
    code: () => `void (async () => { await null; throw new Error('forgotten'); })();`,
    errorText: /threw "forgotten"|^$/,
  },
  'throws in a later call': {
    code: () => `setTimeout(() => { throw new Error('late'); }, 30);`,
    errorText: /threw "late"|^$/,
  },
  'exits later': {
    code: () => `setTimeout(() => process.exit(3), 30);`,
    errorText: /exit code 3|^$/,
  },
  'throws a trap': {
    code: () =>
      `throw new Proxy(new Error('x'), { get() { throw new Error('trap'); }, getPrototypeOf() { throw new Error('trap'); } });`,
    errorText: /threw/,
  },
  'returns methods of its own': {
    code: () =>
      `const list: any = [1]; list.map = list.slice = list[Symbol.iterator] = () => { throw new Error('own'); }; return { ...${text(`'x'`)}, info: { list } };`,
    errorText: /has a definition|from create|returns the observation|^$/,
  },
  'returns a text of 2^20 characters': {
    code: () => `return ${text(`'x'.repeat(2 ** 20)`)};`,
    errorText: /has a definition|from create|returns the observation|^$/,
  },
  'replaces built-in functions': {
    code: () =>
      `for (const { prototype } of [Array, Map, Promise, String] as any[]) for (const key of ['map', 'push', 'shift', 'get', 'set', 'then', 'slice']) if (key in prototype) prototype[key] = () => { throw new Error('replaced'); };`,
    errorText: /replaced|read only|did not return|ended its thread|threw \{\}|^$/, // empty error without built-ins
  },
  'closes the port': {
    code: () =>
      `const { parentPort } = require('node:worker_threads') as any; parentPort?.close(); parentPort?.removeAllListeners(); process.removeAllListeners();`,
    errorText: /ended its thread|^$/,
  },
  'returns a number': {
    code: () => `return 5;`,
    errorText: /returned 5 in|returns the observation 5|returned 5 from create|has no default export/,
  },
  'returns a trap': {
    code: () => `return new Proxy({}, { get() { throw new Error('trap'); } });`,
    errorText: /trap/,
  },
  'returns a text without end': {
    code: () => `return ${text(`'x'.repeat(2 ** 28)`)};`,
    errorText: /observation|has a definition|from create|did not return/,
  },
  'returns an info without end': {
    code: () =>
      `const info = {}; for (let i = 0; i < 2e5; i++) info['key' + i] = 'valuevalue'; return { ...${text(`'x'`)}, info };`,
    errorText: /more than \d+ values|has a definition|from create|observation|did not return/,
  },
  exits: { code: () => `process.exit(3);`, errorText: /exit code 3/ },
  'kills its process': { code: () => `process.kill(process.pid, 'SIGKILL'); for (;;);`, errorText: /SIGKILL/ },
  'floods standard output': {
    code: () => `for (let i = 0; i < 2000; i++) console.log('flood '.repeat(100));`,
    errorText: null,
  },
  'floods the descriptor': {
    code: () => `for (let i = 0; i < 300; i++) writeSync(1, 'flood '.repeat(10000));`,
    errorText: /did not return|EAGAIN|^$/,
    hangs: true,
  },
  'has a child that floods': {
    code: mark =>
      `spawn('sh', ['-c', 'while :; do echo flood; done', '${mark}'], { stdio: ['ignore', 'inherit', 'inherit'] });`,
    errorText: null,
  },
  'starts a child': {
    code: mark => `spawn('sh', ['-c', 'sleep 1000; :', '${mark}'], { stdio: 'ignore' });`,
    errorText: null,
  },
  'starts a daemon': {
    code: mark =>
      `spawn('sh', ['-c', '(sleep 1000; :) & sleep 1000; :', '${mark}'], { stdio: 'ignore', detached: true }).unref();`,
    errorText: null,
  },
  'fills the heap': {
    code: () => `for (const kept = []; ; ) kept.push(new Array(1000).fill(String(kept.length)));`,
    errorText: /ran out of memory|exceeded the memory limit|did not return/,
  },
  'fills memory outside the heap': {
    code: () => `for (const kept = []; ; ) kept.push(new Uint8Array(2 ** 24).fill(1));`,
    errorText:
      /exceeded the memory limit|ran out of memory|ended its process|Array buffer allocation failed|did not return from render/,
  },
};

/**
 * Source of an environment that misbehaves at one place only. `create` misbehaves if the file `<flag>` exists, and
 * removes the file. `reset` misbehaves in the episode of member 1; `step` misbehaves there at the action Bad.
 */
const sourceOf = (place: Place | 'nowhere', body: string, flag: string): string => {
  const at = (here: Place, condition: string) =>
    here === place ? `if (${condition}) { const made = bad(); if (made !== undefined) return made as never; }` : '';
  return `import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
void [spawn, writeSync, existsSync, rmSync];
function bad(): unknown { ${body} }
function due(): boolean { if (!existsSync(${JSON.stringify(flag)})) return false; rmSync(${JSON.stringify(flag)}); return true; }
const harmless = defineEnvironment({
  name: 'counter',
  config: z.object({}),
  actions: { 1: 'Add', 2: 'Bad' },
  instruction: 'Count.',
  create() {
    ${at('create', 'due()')}
    let [count, member] = [0, 0];
    return {
      reset(options) {
        member = options.member ?? 0;
        ${at('reset', 'member === 1')}
        count = 0;
        return { observation: 'count ' + count };
      },
      step(action) {
        ${at('step', 'member === 1 && action === 2')}
        count++;
        return { observation: 'count ' + count, reward: 0.5, terminated: count >= 10, truncated: false, info: {} };
      },
      render() {
        ${at('render', 'true')}
        return 'count ' + count;
      },
    };
  },
});
void due;
export default ${place === 'load' ? '(bad() as typeof harmless) ?? harmless' : 'harmless'};
`;
};

export interface TriedCase {
  behaviour: string;
  place: Place;
  /** Error message; empty if there was none. */
  errorText: string;
  /** Description of the fault in the message or in the later episodes, if there is a fault. */
  broken?: string;
}

export interface TryOptions {
  /** Path of the environment process's bundle. */
  entry: string;
  behaviours: readonly string[];
  places: readonly Place[];
  /** Runs `ragen env check` on an environment; returns its exit code and output. Required for the place `render`. */
  check?: (source: string) => { status: number | null; text: string };
}

/** Time limits of a call in milliseconds. */
const limits = { short: 400, long: 60_000 };
/** Memory limit of the environment process, which uses about 120 MiB without environments. */
const memoryBytes = 500 * 2 ** 20;

/** Tries each behaviour at each place, one after the other, and returns the results. */
export async function tryEnvironmentCode(options: TryOptions): Promise<TriedCase[]> {
  const files = sourceFolder();
  const mark = `ragen-torture-${process.pid}`;
  const tried: TriedCase[] = [];
  let printed = 0;
  const start = (stepTimeoutMs: number) =>
    EnvironmentProcess.start({
      entry: options.entry,
      variables: process.env,
      stepTimeoutMs,
      memoryBytes,
      execArgv: ['--max-old-space-size=192'],
      onNotice: ({ text }) => (printed += text.length),
    });
  const hosts = { short: await start(limits.short), long: await start(limits.long) };
  try {
    for (const behaviour of options.behaviours)
      for (const place of options.places) {
        const { code, errorText, hangs } = behaviours[behaviour];
        const flag = join(files.folder, 'flag');
        const write = (where: Place | 'nowhere') => files.write('bad.ts', sourceOf(where, code(mark), flag));
        const from = performance.now();
        const before = printed;
        const tryIt = { running: hangs ? hosts.short : hosts.long, write, flag: () => files.write('flag', '') };
        const outcome =
          place === 'render'
            ? renderCase(write('render'), options.check!)
            : place === 'load'
              ? await loadCase(tryIt)
              : await playCase(place, tryIt);
        const seconds = (performance.now() - from) / 1000;
        const expected =
          errorText === null
            ? outcome.errorText === ''
            : errorText.test(outcome.errorText) || mayPass(behaviour, place, outcome.errorText);
        const broken =
          outcome.broken ??
          (expected ? undefined : `the message is ${JSON.stringify(outcome.errorText)} instead of ${errorText}`) ??
          (printed - before > printedLimit(seconds)
            ? `${printed - before} characters were forwarded in ${seconds.toFixed(1)} s`
            : undefined);
        tried.push({ behaviour, place, errorText: outcome.errorText, ...(broken !== undefined && { broken }) });
      }
  } finally {
    await Promise.all(Object.values(hosts).map(host => host.stop()));
    const left = markedProcesses(mark);
    if (left.length > 0)
      tried.push({
        behaviour: 'all',
        place: 'load',
        errorText: '',
        broken: `${left.length} child processes still run after the stop: ${left.join(', ')}`,
      });
    rmSync(files.folder, { recursive: true, force: true });
  }
  return tried;
}

/**
 * Whether the case may end without a message: the whole process dies in `create`, and the repeated request succeeds.
 */
const mayPass = (behaviour: string, place: Place, errorText: string): boolean =>
  errorText === '' &&
  place === 'create' &&
  ['kills its process', 'fills the heap', 'fills memory outside the heap'].includes(behaviour);

/** Limit of the printed characters: a process forwards up to 131,072 per second. */
const printedLimit = (seconds: number): number => 131_072 * (seconds + 2) + 4096;

interface Case {
  running: EnvironmentProcess;
  /** Writes an environment that misbehaves at this place and returns its path. */
  write(place: Place | 'nowhere'): string;
  /** Makes the next call of `create` misbehave. */
  flag(): void;
}
type Outcome = Pick<TriedCase, 'errorText' | 'broken'>;

const spec = (source: string): EnvironmentSpec => ({ tag: 'Bad', env_type: 'bad.ts', source, config: {} });
const episodes = ['a', 'b', 'c'];
const resets = episodes.map((episode, member) => ({ episode, tag: 'Bad', seed: 7, member, mode: 'train' as const }));
const steps = (action: number) => episodes.map(episode => ({ episode, actions: [action] }));

/** Plays three episodes, of which one misbehaves while the others must continue, then resets all three. */
async function playCase(place: 'create' | 'reset' | 'step', { running, write, flag }: Case): Promise<Outcome> {
  const { error } = await running.load([spec(write(place))]);
  if (error) return { errorText: error.message, broken: 'it does not load' };
  /** Error message by episode. Work that the code leaves running may fail its episode in the reset or in the step. */
  const failures = new Map<number, string>();
  const see = (states: { error?: { message: string } }[]) =>
    states.forEach(({ error }, i) => error && !failures.has(i) && failures.set(i, error.message));
  if (place === 'create') flag();
  see(await running.reset(resets));
  const played = await running.step(steps(2));
  see(played);
  const [errorText = '', ...more] = failures.values();
  const fine = played.filter(state => !state.error).length;
  const broken =
    more.length > 0
      ? `${failures.size} episodes failed: ${[...failures.values()].join(' | ')}`
      : fine < (errorText === '' ? 3 : 2)
        ? `only ${fine} of 3 episodes continued`
        : undefined;
  return { errorText, broken: broken ?? (await wholeAgain(running, write)) };
}

/** Prepares an edit that misbehaves while loading. The edit must be refused, and the old code must continue. */
async function loadCase({ running, write }: Case): Promise<Outcome> {
  const good = spec(write('nowhere'));
  const { error } = await running.load([good]);
  if (error) return { errorText: error.message, broken: 'the harmless code does not load' };
  await running.reset(resets);
  await running.step(steps(1));
  const [prepared] = await running.prepare([spec(write('load'))], false);
  if (!prepared) return { errorText: '', broken: 'the edit has no result' };
  const errorText = 'problems' in prepared ? prepared.problems.map(({ message }) => message).join(' | ') : '';
  const after = await running.step(steps(1));
  const lost = after.find(state => state.observation !== 'count 2');
  if (lost)
    return {
      errorText,
      broken: `an episode of the old code did not continue: ${lost.error?.message ?? lost.observation}`,
    };
  return { errorText, broken: await wholeAgain(running, write) };
}

/** Plays three new episodes of harmless code. Returns a description of the fault, or undefined without a fault. */
async function wholeAgain(running: EnvironmentProcess, write: Case['write']): Promise<string | undefined> {
  await running.closeEpisodes(episodes);
  const { error } = await running.load([spec(write('nowhere'))]);
  if (error) return `afterwards the harmless code does not load: ${error.message}`;
  const states = [...(await running.reset(resets)), ...(await running.step(steps(1)))];
  const bad = states.find(({ error, observation }) => error ?? !/^count [01]$/.test(observation));
  await running.closeEpisodes(episodes);
  return bad && `afterwards an episode is wrong: ${bad.error?.message ?? bad.observation}`;
}

/** Runs `ragen env check`, which tests render. The check must end: it passes, or fails with an error message. */
function renderCase(source: string, check: NonNullable<TryOptions['check']>): Outcome {
  const { status, text } = check(source);
  if (status === null) return { errorText: text, broken: 'the check did not end' };
  return { errorText: status === 0 ? '' : text };
}

/** Ids of running processes that have the mark among their arguments. */
export function markedProcesses(mark: string): number[] {
  if (!existsSync('/proc')) return [];
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      try {
        return pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes(mark);
      } catch {
        return false;
      }
    });
}

/** Runs `ragen env check` of the built product. */
export function checkWithTerminal(source: string): { status: number | null; text: string } {
  const args = [
    join(root, 'dist/cli.cjs'),
    'env',
    'check',
    source,
    '--json',
    '--seeds',
    '1',
    '--steps',
    '2',
    '--timeout',
    '2000',
  ];
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 2 ** 26,
  });
  const answer = JSON.parse(stdout) as { checks?: { state: string; evidence: string }[]; error?: { message: string } };
  const failed = (answer.checks ?? []).filter(({ state }) => state === 'failed').map(({ evidence }) => evidence);
  return { status, text: [...failed, answer.error?.message ?? ''].join(' | ').slice(0, 500) };
}

/** The part `environment-code` of `npm run torture`. @throws with the guarantee that was broken */
export async function environmentCode(scale: TortureScale): Promise<void> {
  const tried = await tryEnvironmentCode({
    entry: join(root, 'dist/environment-host.cjs'),
    behaviours: Object.keys(behaviours),
    places,
    check: checkWithTerminal,
  });
  const verdict = ({ errorText, broken }: TriedCase) =>
    broken !== undefined
      ? 'BROKEN'
      : errorText === ''
        ? 'continues'
        : (/\((.*?)\)\s*(.*)/.exec(errorText)?.[2]?.slice(0, 24) ?? 'told');
  const rows = Object.keys(behaviours).map(behaviour => [
    behaviour,
    ...places.map(place => verdict(tried.find(each => each.behaviour === behaviour && each.place === place)!)),
  ]);
  console.log(table(['code that', ...places], rows));
  const broken = tried.filter(each => each.broken !== undefined);
  if (broken.length > 0)
    throw new Error(broken.map(each => `${each.behaviour} in ${each.place}: ${each.broken}`).join('\n'));
  const { steps, failures, refusals, mebibytes } = await tryInRun(scale);
  console.log(
    table(
      ['in a training run', 'count'],
      [['steps', steps], ...failures, ['edits refused', refusals], ['MiB of logs', mebibytes]],
    ),
  );
}

/**
 * Source of an environment in which member 3 of each training group misbehaves; the group's seed selects place and
 * behaviour. For `create`, the reset of member 3 writes the flag file once per seed, and the next call of `create`
 * misbehaves.
 */
const manyFaces = (mark: string, flag: string): string => {
  const names = Object.keys(behaviours);
  const functions = names.map(name => `() => { ${behaviours[name].code(mark)} }`).join(',\n  ');
  return `import { spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
void [spawn, writeSync];
const bad: (() => unknown)[] = [
  ${functions},
];
const places = ['create', 'reset', 'step'];
const flag = ${JSON.stringify(flag)};
export default defineEnvironment({
  name: 'words',
  config: z.object({ hold: z.string().default('') }),
  instruction: 'Say a word.',
  create() {
    if (existsSync(flag)) {
      const which = Number(readAndRemove());
      const made = bad[which]();
      if (made !== undefined) return made as never;
    }
    let [seed, member, mode] = [0, 0, 'train'];
    const due = (place: string) => member === 3 && mode === 'train' && places[Math.floor(seed / bad.length) % places.length] === place;
    return {
      reset(options) {
        ({ seed, member = 0, mode = 'train' } = options);
        if (due('create') && !existsSync(flag + '.' + seed)) for (const file of [flag, flag + '.' + seed]) writeFileSync(file, String(seed % bad.length));
        if (due('reset')) { const made = bad[seed % bad.length](); if (made !== undefined) return made as never; }
        return { observation: 'word ' + (seed % 7) };
      },
      step(action) {
        if (due('step')) { const made = bad[seed % bad.length](); if (made !== undefined) return made as never; }
        const length = String(action).length;
        const terminated = (length + seed) % 3 === 0;
        return { observation: 'heard ' + length, reward: (length % 5) / 2, terminated, truncated: false, info: { success: terminated } };
      },
    };
  },
});
function readAndRemove(): string {
  const text = require('node:fs').readFileSync(flag, 'utf8');
  rmSync(flag, { force: true });
  return text;
}
`;
};

/** Behaviours that have no effect while a file loads, or act only after it has loaded. */
const later = new Set([
  'rejects',
  'forgets an await',
  'throws in a later call',
  'exits later',
  'waits for ever',
  'throws later',
  ...Object.keys(behaviours).filter(name => name.startsWith('returns')),
]);

/** Kinds of a run's events that concern edits, in order. */
const edits = (run: string): string[] =>
  readFileSync(join(run, 'events.jsonl'), 'utf8')
    .split('\n')
    .slice(0, -1)
    .map(line => (JSON.parse(line) as RunEvent).kind)
    .filter(kind => ['environment_refused', 'environment_reload', 'environment_mended'].includes(kind));

interface RunReport {
  steps: number;
  /** Number of failed episodes by kind of failure. */
  failures: [string, number][];
  refusals: number;
  mebibytes: number;
}

/**
 * Trains on the environment of `manyFaces`. During the run, the environment's file is edited into code that misbehaves
 * while loading, and then restored.
 */
async function tryInRun(scale: TortureScale): Promise<RunReport> {
  const workspace = makeWorkspace();
  const mark = `ragen-torture-run-${process.pid}`;
  const good = manyFaces(mark, join(workspace.folder, 'flag'));
  const source = 'environments/words.ts';
  workspace.write(source, good);
  const names = Object.keys(behaviours);
  const wanted = scaled(3 * names.length, scale); // two groups per step: each behaviour occurs twice per place
  try {
    const run = await startDetached(workspace.folder, [
      ...[
        'trainer.total_training_steps=100000',
        'trainer.save_freq=50',
        'trainer.test_freq=-1',
        'trainer.val_before_train=false',
      ],
      ...['workbench.step_timeout_ms=1000', 'workbench.max_failed_episodes_share=0.5', 'workbench.check_types=false'],
      ...[
        'workbench.max_environment_memory_gb=0.6',
        'workbench.early_stops=[]',
        'actor_rollout_ref.rollout.rollout_filter_empty_stop_steps=0',
      ],
    ]);
    const until = async (what: string, condition: () => boolean) => {
      for (const deadline = Date.now() + 180_000; !condition(); await sleep(100)) {
        const { state, error } = statusOf(run)!;
        if (state !== 'running' && state !== 'starting')
          throw new Error(`the run is ${state} (${error}) while the test waited for ${what}`);
        if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
      }
    };
    /** Edits the file; resolves to the kind of the event that follows the edit. */
    const edit = async (what: string, content: string): Promise<string> => {
      const before = edits(run).length;
      workspace.write(source, content);
      await until(`the event of ${what}`, () => edits(run).length > before);
      return edits(run).at(-1)!;
    };
    let refusals = 0;
    await until('its first step', () => statusOf(run)!.step > 0);
    for (const name of names.filter(name => !later.has(name)).slice(0, Math.ceil(names.length * scale.scale))) {
      const errorText = await edit(
        `an edit that ${name}`,
        `${good}\nvoid (() => { ${behaviours[name].code(mark)} })();\n`,
      );
      refusals += Number(errorText === 'environment_refused');
      await edit(`the correction of an edit that ${name}`, good);
      scale.say(`an edit that ${name}: ${errorText}; step ${statusOf(run)!.step}`);
    }
    await until(`step ${wanted}`, () => statusOf(run)!.step >= wanted);
    process.kill(leaseOf(run)!.pid, 'SIGTERM');
    for (let waited = 0; statusOf(run)!.state !== 'stopped' && waited < 300; waited++, await sleep(100));
    const { status, episodes } = readRun(run);
    if (status?.state !== 'stopped') throw new Error(`the run is ${status?.state}: ${status?.error}`);
    for (let waited = 0; markedProcesses(mark).length > 0 && waited < 50; waited++, await sleep(100));
    const left = markedProcesses(mark);
    if (left.length > 0) throw new Error(`${left.length} child processes still run after the run: ${left.join(', ')}`);
    const bytes = readdirSync(run)
      .filter(name => name.startsWith('trainer.log'))
      .reduce((sum, name) => sum + statSync(join(run, name)).size, 0);
    if (bytes > 45 * 2 ** 20) throw new Error(`the logs of ${basename(run)} hold ${bytes} bytes`);
    const kinds = new Map<string, number>();
    for (const { error } of episodes) {
      if (error === undefined) continue;
      const kind = /did not return|exit code|SIGKILL|memory|threw|returned|gave/.exec(error)?.[0] ?? 'other';
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    const failures = [...kinds].map(([kind, count]): [string, number] => [`episodes that failed: ${kind}`, count]);
    return { steps: status.step, failures, refusals, mebibytes: Math.round(bytes / 2 ** 20) };
  } finally {
    const run = join(workspace.folder, '.ragen/runs');
    const pids = (existsSync(run) ? readdirSync(run) : []).flatMap(name => leaseOf(join(run, name))?.pid ?? []);
    const ending = [...pids, ...pids.flatMap(childrenOf)];
    for (const pid of pids) process.kill(pid, 'SIGKILL');
    // Environments write until their process notices that the trainer has ended.
    for (let waited = 0; ending.some(isAlive) && waited < 50; waited++, await sleep(100));
    workspace.remove();
  }
}
