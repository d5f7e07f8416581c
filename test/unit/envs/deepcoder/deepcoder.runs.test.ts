// The deepcoder environment: shipped tasks with their solutions, rewards by tests passed, both languages, feedback,
// custom data, and refusals.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDataSet } from '../../../../envs/api/data-set';
import { PythonRandom } from '../../../../envs/api/random/python-random';
import deepcoder from '../../../../envs/deepcoder/index';
import { problemOf } from '../../../../envs/deepcoder/problems';
import { isolationMissing } from './isolation';

const missing = await isolationMissing();
const shipped = resolve(__dirname, '../../../../media/data/deepcoder');
let folder: string;
let tasks = 0;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'ragen-deepcoder-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a data set of one task and returns its path. */
function task(row: object): string {
  const file = join(folder, `task-${tasks++}.jsonl`);
  writeFileSync(file, `${JSON.stringify(row)}\n`);
  return file;
}
const doubles = {
  problem: 'Double it.',
  tests: ['1', '2', '5', '-3'].map(input => ({ input, output: String(2 * Number(input)) })),
};
const sums = {
  problem: 'Add up.',
  tests: [
    { input: '[1, 2]\n3', output: '6', testtype: 'functional' },
    { input: '[]\n0', output: '0', testtype: 'functional' },
  ],
  metadata: { func_name: 'total' },
};
async function begin(config: Record<string, unknown>, seed = 0) {
  const environment = deepcoder.create(deepcoder.config.parse({ test_timeout: 5, total_timeout: 20, ...config }));
  const { observation } = (await environment.reset({ seed })) as { observation: string };
  const step = async (action: string) => await environment.step(action);
  return { environment, observation, step };
}
const answer = async (row: object, code: string, config: Record<string, unknown> = {}) =>
  (await begin({ dataset_path: task(row), ...config })).step(code);

test('the shipped tasks come from the committed script', () => {
  execFileSync(process.execPath, [resolve(shipped, '../make/deepcoder.mjs'), folder]);
  for (const name of ['train.jsonl', 'test.jsonl'])
    expect(readFileSync(join(folder, 'deepcoder', name), 'utf8')).toBe(readFileSync(join(shipped, name), 'utf8'));
});

test('the task is the one CPython draws, with instructions on what the program must do', async () => {
  const set = await openDataSet(shipped, { split: 'train', remedy: '' });
  for (const seed of [0, 10_005]) {
    const { text } = problemOf(await set.row(new PythonRandom(seed).randint(0, set.length - 1)));
    expect((await begin({}, seed)).observation.startsWith(text)).toBe(true);
  }
  expect((await begin({ dataset_path: task(doubles) })).observation).toBe(
    'Double it.\n\nRead from standard input and write to standard output.',
  );
  expect((await begin({ dataset_path: task(sums) })).observation).toBe('Add up.\n\nThe function is called total.');
});

describe.skipIf(missing !== undefined)(`answers in isolation${missing ? ` (skipped: it ${missing})` : ''}`, () => {
  test('each shipped task is solved by its solution', async () => {
    const seen = new Set<string>();
    for (const split of ['train', 'test']) {
      const set = await openDataSet(shipped, { split, remedy: '' });
      for (let seed = 0; seen.size < (split === 'train' ? set.length : 22); seed++) {
        const { environment, observation, step } = await begin({ split, max_tests: 2 }, seed);
        if (seen.has(observation)) continue;
        seen.add(observation);
        const [solution] = (await environment.solve!())!;
        expect([observation, (await step(String(solution))).observation]).toEqual([observation, 'Correct!']);
        expect(await environment.solve!()).toEqual([]);
      }
    }
  });

  test('the reward is the share of tests passed', async () => {
    expect(await answer(doubles, 'print(2 * int(input()))')).toMatchObject({
      observation: 'Correct!',
      reward: 1,
      terminated: true,
      info: { success: true, passed_tests: 4, total_tests: 4, runnable: true, pass_reward: 1 },
    });
    expect(await answer(doubles, 'n = int(input())\nprint(2 * n if n < 4 else n)')).toMatchObject({
      observation: 'Incorrect. 3 of 4 tests passed. Test 3 of 4: expected 10, got 5.',
      reward: 0.75,
      terminated: true,
      info: { success: false, action_is_effective: true, passed_tests: 3 },
    });
    expect(await answer(doubles, 'print(2 * int(input()))', { max_tests: 1 })).toMatchObject({
      info: { total_tests: 1 },
    });
    expect(await answer({ problem: 'p', tests: [] }, 'x')).toMatchObject({ reward: 0, info: { success: false } });
  });

  test.each([
    ['a function', 'def total(list, more):\n    return sum(list) + more', 1],
    ['a class', 'class Solution:\n    def total(self, list: List[int], more):\n        return sum(list) + more', 1],
    [
      'a function in JavaScript',
      '```js\nconst total = (list, more) => list.reduce((a, b) => a + b, 0) + more || 0;\n```',
      1,
    ],
    [
      'a class in JavaScript',
      '```javascript\nclass Solution { async total(list, more) { return list.reduce((a, b) => a + b, more); } }\n```',
      1,
    ],
    ['the wrong value', 'def total(list, more):\n    print("6")\n    return 6', 0.5],
    ['an end before the call', 'import sys\nprint("6")\nsys.exit(0)', 0],
  ])('score as expected: %s', async (_, code, reward) => expect((await answer(sums, code)).reward).toBe(reward));

  test.each([
    ['print(', 'Test 1 of 4: ended with exit code 1 (SyntaxError'],
    ['print(1 / 0)', 'ended with exit code 1 (ZeroDivisionError: division by zero).'],
    ['while True: pass', 'did not end within 0.5 seconds.'],
    ['while True: print("x" * 9999)', 'wrote too much.'],
  ])('%j gets feedback on the failure', async (code, feedback) => {
    const { observation, reward, info } = await answer(doubles, code, {
      test_timeout: 0.5,
      total_timeout: 1,
      max_tests: 4,
    });
    expect([String(observation).includes(feedback), reward, info.runnable]).toEqual([true, 0, false]);
  });

  test('several steps give feedback in between', async () => {
    const { step, observation } = await begin({
      dataset_path: task(doubles),
      max_steps: 3,
      invalid_action_score: -0.25,
    });
    expect(await step('  ')).toMatchObject({
      reward: -0.25,
      terminated: false,
      truncated: false,
      info: { action_is_valid: false },
    });
    const wrong = await step('print(2)');
    expect(wrong).toMatchObject({ reward: 0.25, terminated: false, truncated: false });
    expect(wrong.observation).toBe(`${observation}\n\nFeedback: 1 of 4 tests passed. Test 2 of 4: expected 4, got 2.`);
    expect(await step('print(2)')).toMatchObject({ terminated: true, info: { success: false } });
  });

  test("an episode's texts equal the expected transcript", async () => {
    const { environment, observation, step } = await begin({ max_steps: 2 }, 10_003);
    const text = [observation];
    for (const action of [
      'def spreads(self, grid):\n    return [0] * len(grid[0])',
      ...(await environment.solve!())!,
    ]) {
      const { observation, reward, terminated, info } = await step(String(action));
      const ended = terminated ? ', terminated' : '';
      text.push(`> ${action}: reward ${reward}${ended}, ${JSON.stringify(info)}`, String(observation));
    }
    const file = resolve(__dirname, '../../../golden/envs/transcripts/deepcoder.txt');
    await expect(`${text.join('\n')}\n`).toMatchFileSnapshot(file);
  });

  test('isolation is checked before the first episode', async () => {
    await expect(deepcoder.dependencies!(deepcoder.config.parse({}))).resolves.toBeUndefined();
    await expect(deepcoder.dependencies!(deepcoder.config.parse({ python_path: '/no/python3' }))).rejects.toThrow(
      'cannot find python3',
    );
  });
});

test('without isolation, answers run if the setting allows it, under the same limits', async () => {
  const config = { isolation: 'none', dataset_path: task(doubles), max_tests: 2 };
  expect(await (await begin(config)).step('print(2 * int(input()))')).toMatchObject({ reward: 1 });
  expect(await (await begin({ ...config, test_timeout: 0.5 })).step('while True: pass')).toMatchObject({ reward: 0 });
});

test('without isolation, the environment is refused by default', async () => {
  const path = process.env.PATH;
  process.env.PATH = folder;
  try {
    await expect(deepcoder.dependencies!(deepcoder.config.parse({}))).rejects.toMatchObject({
      message: 'cannot isolate the programs in answers (the program bwrap is not installed)',
      remedy: expect.stringContaining('apt-get install bubblewrap'),
    });
  } finally {
    process.env.PATH = path;
  }
});

test('validation has tasks that never occur in training', async () => {
  const environment = deepcoder.create(deepcoder.config.parse({}));
  const seen = async (mode: 'train' | 'val') => {
    const texts = Array.from({ length: 60 }, async (_, seed) => (await environment.reset({ seed, mode })).observation);
    return new Set(await Promise.all(texts));
  };
  const [train, val] = [await seen('train'), await seen('val')];
  expect([train.size, val.size]).toEqual([16, 6]);
  expect([...val].filter(text => train.has(text))).toEqual([]);
});
