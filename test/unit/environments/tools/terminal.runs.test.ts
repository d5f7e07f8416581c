// `ragen env list|check|play` as users and programs call them, in the real CLI.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, test } from 'vitest';
import type {
  ContractReport,
  ListedEnvironment,
  PlayDo,
  PlayReply,
  Transcript,
} from '../../../../extension/protocol/environment-tools';
import { root } from '../../../support/bundles';

const workspace = mkdtempSync(join(tmpdir(), 'ragen-environment-tools-'));
const write = (name: string, text: string): string => {
  mkdirSync(join(workspace, name, '..'), { recursive: true });
  writeFileSync(join(workspace, name), text);
  return join(workspace, name);
};
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

/** Source of an environment that counts to `goal`. The statements of `step` run at the start of each step. */
const counter = (step = '', goal = 3) => `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'counter',
  config: z.object({ start: z.number().default(0) }),
  actions: { 1: 'Add', 2: 'Take' },
  instruction: 'Count to ${goal}.',
  create({ start }) {
    let count = 0;
    return {
      reset: ({ seed }) => ({ observation: 'count ' + (count = start + (seed % 2)) }),
      step(action) {
        ${step}
        if (count >= ${goal}) throw new Error('the episode is over: reset first');
        count = Math.max(0, count + (action === 1 ? 1 : -1));
        const success = count >= ${goal};
        return { observation: 'count ' + count, reward: success ? 1 : 0, terminated: success, truncated: false, info: { success } };
      },
      solve: () => Array.from({ length: Math.max(0, ${goal} - count) }, () => 1),
    };
  },
});
`;

/** Two roles in turns, each with an action of its own. */
const race = `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'race',
  config: z.object({}),
  actions: { 1: 'One', 2: 'Two' },
  instruction: 'Count.',
  roles: { odd: {}, even: {} },
  create() {
    let said = 0;
    const turn = () => (said % 2 === 0 ? { role: 'odd', actions: { 1: 'One' } } : { role: 'even', actions: { 2: 'Two' } });
    return {
      reset: () => ((said = 0), { observation: 'said 0', ...turn() }),
      step: () => (said++, { observation: 'said ' + said, reward: 1, terminated: said === 3, truncated: false, info: {}, ...turn() }),
    };
  },
});
`;

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(root, 'dist/cli.cjs'), 'env', ...args], { cwd: workspace });
}

async function ragen<T>(args: readonly string[], input = '') {
  const child = start(args);
  let [stdout, stderr] = ['', ''];
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  child.stdin!.end(input);
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, stdout, stderr, document: () => JSON.parse(stdout) as T };
}

describe('play --input', () => {
  const play = async (cases: unknown[]) =>
    (await ragen<Transcript[]>(['play', '--input', '-', '--json'], JSON.stringify(cases))).document();

  test('sprites are found by built-in environments and by files of the workspace that wrap them', async () => {
    const wrap = (name: string) => {
      write(`${name}.ts`, `import wrapped from 'ragen-workbench/envs/${name}';\nexport default wrapped;\n`);
      return `${name}.ts`;
    };
    const names = ['sokoban', 'frozen_lake', 'noisy_lake'];
    const config = { render_mode: 'rgb_array', picture: 'sprites' };
    const episodes = await play(
      [...names, ...names.map(wrap)].map(env => ({ env, config, seed: 10000, actions: [4] })),
    );
    const pictures = episodes.map(episode => {
      const { observation, images, steps } = episode as Extract<Transcript, { steps: unknown }>;
      expect(observation).toBe('<image>');
      return [images![0], steps[0].images![0]];
    });
    expect(pictures.slice(3)).toEqual(pictures.slice(0, 3));
    expect(new Set(pictures.flat()).size).toBe(4); // the rooms, and the lakes of both environments
  });

  test('accepts ids and names, ends with the episode, and reports each error with its position', async () => {
    write('envs/counter/counter.ts', counter());
    write('cracked.ts', counter("if (action === 2) throw new Error('no way back');"));
    const [walked, named, ended, text, unknownEnv, unknownKey, unknownAction, malformed, broken, own] = await play([
      { env: 'sokoban', config: { dim_room: [6, 6], num_boxes: 1 }, seed: 10000, actions: [1, 4] },
      { env: 'sokoban', config: { dim_room: [6, 6], num_boxes: 1 }, seed: 10000, actions: ['up', 'Right'] },
      { env: 'counter', seed: 2, actions: ['Add', 'Add', 'Add', 'Add', 'Add'] },
      { env: 'countdown', seed: 1, actions: ['1 + 1'] },
      { env: 'chess', seed: 1 },
      { env: 'sokoban', config: { dim_rom: [6, 6] }, seed: 1 },
      { env: 'frozen_lake', seed: 1, actions: ['jump'] },
      { env: 'sokoban', seeds: 1 },
      { env: 'cracked.ts', seed: 1, actions: ['Take'] },
      { env: 'envs/counter/counter.ts', config: { start: 1 }, seed: 1, actions: [] },
    ]);
    expect(walked).toEqual(named);
    expect(walked).toMatchObject({
      observation: '######\n#O####\n#__###\n#X_###\n#_P_##\n######',
      steps: [{ observation: '######\n#O####\n#__###\n#XP###\n#___##\n######', reward: -0.1 }, { reward: -0.1 }],
    });
    expect(ended).toMatchObject({ steps: [{ reward: 0 }, { reward: 0 }, { reward: 1, terminated: true }] });
    expect((ended as { steps: unknown[] }).steps).toHaveLength(3);
    expect(text).toMatchObject({ steps: [{ terminated: true, truncated: false, info: { success: false } }] });
    const sentence = (pattern: RegExp) => ({ error: expect.stringMatching(pattern) as string });
    expect(unknownEnv).toEqual(
      sentence(/^environment chess is neither a built-in environment \(.*sokoban.*\) nor a file/),
    );
    expect(unknownKey).toEqual(sentence(/does not know \[5\]\.config\.dim_rom \(\[6,6\]\): use one of dim_room/));
    expect(unknownAction).toEqual(
      sentence(/^\[6\]\.actions: "jump" is not an action of this environment: use one of Left \(1\)/),
    );
    expect(malformed).toEqual(sentence(/^\[7\]\.seed is missing: give/));
    expect(broken).toEqual(sentence(/cracked\.ts:\d+\) threw "no way back" in step\(Take\) at seed 1/));
    expect(own).toEqual({ observation: 'count 2', steps: [] });
  });

  test('reads each action by the names of the role whose turn it is', async () => {
    write('race.ts', race);
    const [played, wrong] = await play([
      { env: 'race.ts', seed: 1, actions: ['One', 'Two', 'One'] },
      { env: 'race.ts', seed: 1, actions: ['One', 'One'] },
    ]);
    expect(played).toMatchObject({ role: 'odd', steps: [{ role: 'even' }, { role: 'odd' }, { terminated: true }] });
    expect(wrong).toEqual({
      error: expect.stringMatching(/^\[1\]\.actions: "One" is not an action .*: use one of Two \(2\)/) as string,
    });
  });

  test('plays hundreds of cases in one process', async () => {
    const cases = Array.from({ length: 400 }, (_, i) => ({
      env: i % 2 === 0 ? 'frozen_lake' : 'sokoban',
      config: i % 2 === 0 ? { is_slippery: true } : { dim_room: [6, 6], num_boxes: 1 },
      seed: i,
      actions: Array.from({ length: 30 }, (_, k) => 1 + ((i + k) % 4)),
    }));
    const transcripts = await play(cases);
    expect(transcripts).toHaveLength(400);
    expect(transcripts.filter(transcript => 'error' in transcript)).toEqual([]);
  }, 20_000);

  test('writes images beside the text', async () => {
    const [transcript] = await play([{ env: 'sokoban', config: { render_mode: 'rgb_array' }, seed: 1, actions: [1] }]);
    const { images } = transcript as { images: string[] };
    expect(Buffer.from(images[0], 'base64').subarray(1, 4).toString()).toBe('PNG');
  });

  test('refuses input that is not an array of cases in one sentence', async () => {
    const { code, stderr } = await ragen(['play', '--input', '-'], '{"env": "sokoban"}');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^standard input contains .*not an array.*\n$/)]);
  });
});

describe('play --stdio', () => {
  /** Opens a session over JSON lines. */
  async function open(args: readonly string[]) {
    const child = start(['play', ...args, '--stdio']);
    const replies = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const reply = async () => JSON.parse((await replies.next()).value as string) as PlayReply;
    let id = 0;
    const ask = async (asked: PlayDo) => {
      child.stdin!.write(`${JSON.stringify({ id: ++id, ...asked })}\n`);
      const answered = await reply();
      expect(answered.id).toBe(id);
      return answered;
    };
    const close = async () => {
      const ended = new Promise<number | null>(resolve => child.once('close', resolve));
      child.stdin!.end();
      return ended;
    };
    return { first: await reply(), ask, close };
  }

  test('steps, undoes, calls the solver and restarts', async () => {
    write('envs/counter/counter.ts', counter());
    const { first, ask, close } = await open(['counter', '--seed', '2', '--set', 'start=-4', '--set', 'start=1']);
    expect(first.session).toMatchObject({
      environment: 'counter',
      seed: 2,
      config: { start: 1 },
      actions: [
        { id: 1, name: 'Add' },
        { id: 2, name: 'Take' },
      ],
      first: { observation: 'count 1' },
      steps: [],
      over: false,
    });
    await ask({ do: 'act', action: 2 });
    const added = await ask({ do: 'act', action: 'add' });
    expect(added.session?.steps.map(({ name, observation }) => [name, observation])).toEqual([
      ['Take', 'count 0'],
      ['Add', 'count 1'],
    ]);
    expect((await ask({ do: 'undo' })).session?.steps).toHaveLength(1);
    expect((await ask({ do: 'hint' })).session?.hint).toEqual(['Add', 'Add', 'Add']);
    expect(await ask({ do: 'act', action: 'jump' })).toMatchObject({
      session: { steps: [{ name: 'Take' }] },
      error: { message: expect.stringContaining('"jump" is not an action of this environment') as string },
    });
    const solved = await ask({ do: 'solve' });
    expect(solved.session).toMatchObject({ over: true, total: 1 });
    expect((await ask({ do: 'act', action: 1 })).error?.message).toContain('the episode is over');
    expect((await ask({ do: 'restart', seed: 3 })).session).toMatchObject({
      seed: 3,
      steps: [],
      first: { observation: 'count 2' },
    });
    expect(await close()).toBe(0);
  });

  test('shows the role whose turn is next and its actions, also after an undo', async () => {
    write('race.ts', race);
    const { first, ask, close } = await open(['race.ts', '--seed', '1']);
    expect(first.session).toMatchObject({ first: { role: 'odd' }, actions: [{ id: 1, name: 'One' }] });
    const second = await ask({ do: 'act', action: 'One' });
    expect(second.session).toMatchObject({ steps: [{ name: 'One', role: 'even' }], actions: [{ id: 2, name: 'Two' }] });
    await ask({ do: 'act', action: 'Two' });
    const undone = await ask({ do: 'undo' });
    expect(undone.session).toMatchObject({ steps: [{ role: 'even' }], actions: [{ id: 2, name: 'Two' }] });
    expect(await close()).toBe(0);
  });

  test('replays on new code and reports the differences; code that fails leaves the session unchanged', async () => {
    const file = write('envs/counter/counter.ts', counter());
    const { ask, close } = await open(['counter', '--seed', '2']);
    await ask({ do: 'act', action: 1 });
    const before = await ask({ do: 'act', action: 1 });
    write('envs/counter/counter.ts', counter('count += 0.5;'));
    const reloaded = await ask({ do: 'reload' });
    expect(reloaded.session?.reloaded?.from).toBe(before.session?.version);
    expect(reloaded.session?.version).not.toBe(before.session?.version);
    expect(reloaded.session?.reloaded?.differences).toEqual([
      { step: 1, what: 'observation', before: 'count 1', after: 'count 1.5' },
      { step: 2, what: 'observation', before: 'count 2', after: 'count 3' },
      { step: 2, what: 'reward', before: '0', after: '1' },
      { step: 2, what: 'end', before: 'continues', after: 'terminated' },
      { step: 2, what: 'info', before: '{"success":false}', after: '{"success":true}' },
    ]);
    write('envs/counter/counter.ts', counter("throw new Error('broken');"));
    const broken = await ask({ do: 'reload' });
    expect(broken.error?.at).toBe(`${file}:13`);
    write('envs/counter/counter.ts', counter('count +'));
    expect((await ask({ do: 'reload' })).error).toMatchObject({
      at: `${file}:14`,
      message: expect.stringContaining('does not build') as string,
    });
    write('envs/counter/counter.ts', counter());
    expect((await ask({ do: 'reload' })).session).toMatchObject({
      steps: [{ observation: 'count 1' }, { observation: 'count 2' }],
    });
    expect(await close()).toBe(0);
  });

  test('starts when the source builds', async () => {
    write('late.ts', 'export default 1;');
    const { first, ask, close } = await open(['late.ts']);
    expect(first.session).toBeUndefined();
    expect(first.error?.message).toContain('late.ts');
    write('late.ts', counter());
    expect((await ask({ do: 'reload' })).session).toMatchObject({ environment: 'counter' });
    await close();
  });
});

test('play is interactive in a terminal', async () => {
  write('envs/counter/counter.ts', counter());
  const { code, stdout } = await ragen(['play', 'counter', '--seed', '2'], 'Add\n:hint\n:undo\n:solve\n:quit\n');
  expect(code).toBe(0);
  expect(stdout).toMatch(/counter \w{16}, seed 2[\s\S]*Actions: Add \(1\), Take \(2\)/);
  expect(stdout).toContain('1. Add: reward 0, total 0');
  expect(stdout).toContain('Solver: Add, Add');
  expect(stdout).toMatch(/3\. Add: reward 1, total 1 .*The episode is over \(terminated\)/);
});

test('play in a terminal says whose turn it is, by which instruction, and what each role has earned', async () => {
  write('race.ts', race.replace('even: {}', "even: { instruction: 'Answer second.' }"));
  const { code, stdout } = await ragen(['play', 'race.ts', '--seed', '1'], 'One\nTwo\nOne\n');
  expect(code).toBe(0);
  expect(stdout).toMatch(/Count\.\n\nRoles: odd, even\n\neven: Answer second\.\n/);
  expect(stdout).toContain('Turn of odd: One (1).');
  expect(stdout).toContain('1. odd, One: reward odd 1, total odd 1 · even 0.\nTurn of even: Two (2).');
  expect(stdout).toContain('3. odd, One: reward odd 1, total odd 2 · even 1. The episode is over (terminated)');
});

test('list shows the workspace’s environments beside the built-in ones', async () => {
  write('envs/counter/counter.ts', counter());
  write('envs/helper.ts', 'export const helper = 1;');
  write('envs/torn.ts', 'export default defineEnvironment({');
  const listed = (await ragen<ListedEnvironment[]>(['list', '--json'])).document();
  expect(listed.find(({ env_type }) => env_type === 'frozen_lake')).toMatchObject({
    built_in: true,
    has_solver: true,
    actions: { 1: 'Left', 2: 'Down', 3: 'Right', 4: 'Up' },
    config: { size: 4, is_slippery: true },
    missing: null,
  });
  const lean = listed.find(({ env_type }) => env_type === 'lean')!;
  expect(lean.missing).toMatch(/cannot reach a Lean server at .*: start/);
  expect(lean.config).toMatchObject({ repl_command: null }); // listed without its server
  expect(listed.filter(({ built_in }) => !built_in).map(({ env_type, name }) => [env_type, name])).toEqual([
    ['envs/counter/counter.ts', 'counter'],
    ['envs/torn.ts', 'envs/torn.ts'],
  ]);
  expect(listed.find(({ env_type }) => env_type === 'envs/torn.ts')).toMatchObject({
    config: null, // unknown, because its code does not load
    missing: expect.stringContaining('torn.ts') as string,
  });
}, 40_000);

describe('check', () => {
  const check = async (file: string) => {
    const said = await ragen<ContractReport>(['check', file, '--timeout', '1500', '--json']);
    return { ...said, failed: said.document().checks.filter(({ state }) => state === 'failed') };
  };

  test('passes an environment that meets the contract', async () => {
    write('envs/counter/counter.ts', counter());
    const { code, failed, document } = await check('counter');
    expect([code, failed]).toEqual([0, []]);
    expect(document()).toMatchObject({ environment: 'counter', source: join(workspace, 'envs/counter/counter.ts') });
  });

  test('calls the score functions of the rewards file beside the environment', async () => {
    write('envs/scored/scored.ts', counter());
    const file = write(
      'envs/scored/scored.rewards.ts',
      `import { defineRewards } from 'ragen-workbench/api/rewards';
export default defineRewards({
  components: { brevity: 0.1 },
  score: ({ thought }) => ({ brevity: 1 / thought!.length }),
});`,
    );
    const { code, failed } = await check('scored');
    expect(code).toBe(1);
    expect(failed).toEqual([
      {
        name: 'score functions return numbers and do not change the state',
        state: 'failed',
        evidence: expect.stringMatching(/^score throws "Cannot read properties of null/) as string,
        at: `${file}:4`,
      },
    ]);
  });

  test.each([
    [
      "if (action === 2) throw new Error('no way back');",
      'every call returns',
      /step\(Take\) throws "no way back"/,
      13,
    ],
    [
      'if (Math.random() < 0.5) count = Math.max(0, count - 0.25);',
      'the same seed and actions give the same episode',
      /A second instance differs at seed \d/,
      undefined,
    ],
    ['for (;;);', 'every call returns', /did not return from step within \d+ ms/, undefined],
    ['process.exit(3);', 'every call returns', /exit/, undefined],
  ])(
    'finds %s',
    async (step, name, evidence, line) => {
      const file = write('spoilt.ts', counter(step));
      const { code, failed } = await check('spoilt.ts');
      expect(code).toBe(1);
      expect(failed).toEqual([
        expect.objectContaining({
          name,
          evidence: expect.stringMatching(evidence) as string,
          ...(line && { at: `${file}:${line}` }),
        }),
      ]);
    },
    30_000,
  );

  test.each([
    [
      'writes to the channel',
      "process.getBuiltinModule('node:fs').writeSync(3, Buffer.alloc(16, 0xaa))",
      /sent .+: write only to file descriptors that the environment opened/,
    ],
    ['closes the channel', "process.getBuiltinModule('node:fs').closeSync(3)", /closed its channel|ended its process/],
    [
      'kills its process',
      "process.kill(process.pid, 'SIGKILL')",
      /ended its process \(SIGKILL\): throw an error instead/,
    ],
    ['stops its process', "process.kill(process.pid, 'SIGSTOP')", /stopped its process for \d+ ms \(SIGSTOP\): /],
  ])(
    'ends with one sentence if the environment %s',
    async (_, statement, sentence) => {
      const file = write('spoilt.ts', counter(`${statement}; for (;;);`));
      const { code, stdout, stderr } = await ragen(['check', 'spoilt.ts', '--timeout', '30000', '--json']);
      expect(code).not.toBe(0);
      const output = stdout + stderr;
      expect(output).toMatch(sentence);
      expect(output).toContain(file);
      expect(output).not.toMatch(/^\s+at /m);
    },
    60_000,
  );

  test('a file that does not build is reported with the line of the error', async () => {
    const file = write('spoilt.ts', counter('count +'));
    const { code, failed } = await check('spoilt.ts');
    expect([code, failed]).toEqual([
      1,
      [expect.objectContaining({ name: 'the file builds and loads', at: `${file}:14` })],
    ]);
  });
});
