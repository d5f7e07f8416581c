// Score functions in the environment process: those of an environment and those of a rewards file beside it. Checks
// their arguments, values, errors with locations, time limits, live edits and the replay after a death of the process.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AnsweredTurn } from '../../../../envs/api/rewards';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { environmentSpecs } from '../../../../extension/environments/client/environment-specs';
import type { EnvironmentSpec, EpisodeStep } from '../../../../extension/protocol/environment-link';
import { sourceSnapshots } from '../../../../extension/trainer/store/source-snapshots';
import { counter, root, startProcess, workspace } from '../../../support/bundles';

let running: EnvironmentProcess;
const { folder, write } = workspace();
beforeAll(async () => {
  ({ running } = await startProcess(join(root, 'dist/environment-host.cjs'), { stepTimeoutMs: 1000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(folder, { recursive: true, force: true });
});

const rewards = (components: string, body: string) => `import { defineRewards } from 'ragen-workbench/api/rewards';
export default defineRewards({
  components: ${components},
${body}
});
`;
/** The counter with score functions of its own: `count` reads the state of the episode. */
const scored = (body: string, components = '{ count: 0.5, all: 1 }') =>
  counter()
    .replace("name: 'counter',", `name: 'counter',\n  components: ${components},`)
    .replace('      step(action) {', `${body}\n      step(action) {`);

const specOf = (tag: string, file: string, settings: object = {}): EnvironmentSpec =>
  environmentSpecs([tag], { [tag]: { env_type: file, ...settings } }, join(root, 'envs'), folder)[0];
async function loaded(spec: EnvironmentSpec) {
  const { environments, error } = await running.load([spec]);
  return error ? { error: error.message } : { environment: environments[0] };
}
const reset = (tag: string, episode = tag) =>
  running.reset([{ episode, tag, seed: 3, member: 1, mode: 'train' as const }]);
const turn: Omit<AnsweredTurn, 'executed' | 'reward' | 'info'> = {
  ...{ turn: 1, state: 'count 0', raw: '<think>one two</think><answer>Add</answer>', thought: 'one two' },
  ...{ answer: 'Add', parsed: ['Add'], finish: 'stop' },
};
const step = async (episode: string, actions: number[], more: Partial<typeof turn> = {}): Promise<EpisodeStep> =>
  (await running.step([{ episode, actions, score: { turn: { ...turn, ...more } } }]))[0];

test('score functions see the state after the actions, the outcome of the turn and the complete episode', async () => {
  const score =
    'score: turn => ({ count: count + turn.reward * 100 + turn.executed.length * 1000 + (turn.info.count ?? 0) * 1e4 }),';
  const all = 'scoreEpisode: async ({ turns, final_state }) => ({ all: turns.length + final_state.length }),';
  write('own.ts', scored(`${score}\n${all}`));
  const { environment } = await loaded(specOf('Own', 'own.ts'));
  expect(environment).toMatchObject({ components: { count: 0.5, all: 1 }, scores: { turn: true, episode: true } });
  await reset('Own');
  const acted = await step('Own', [1, 1]);
  expect(acted.outcomes).toHaveLength(2);
  expect(acted.components).toEqual({ count: 2 + 100 + 2000 + 20_000 });
  const idle = await step('Own', []); // no action: the environment is not stepped, but scores the answer
  expect([idle.outcomes, idle.components, idle.observation]).toEqual([[], { count: 2 }, 'count 2']);
  const answered = { ...turn, executed: ['Add'], reward: 0.5, info: {} };
  const episode = {
    turns: [answered, answered],
    final_state: 'abc',
    terminated: true,
    truncated: false,
    success: true,
  };
  const [over] = await running.step([{ episode: 'Own', actions: [], score: { episode } }]);
  expect([over.components, over.error]).toEqual([{ all: 5 }, undefined]);
});

test('environments without score functions have no components, and their code keeps its version', async () => {
  const source = write('plain.ts', counter());
  const { environment } = await loaded(specOf('Plain', 'plain.ts'));
  expect(environment).not.toHaveProperty('components');
  expect(environment).not.toHaveProperty('scores');
  await reset('Plain');
  const [played] = await running.step([{ episode: 'Plain', actions: [1] }]);
  expect(played).not.toHaveProperty('components');
  write(
    'plain.rewards.ts',
    rewards('{ words: 1 }', '  score: turn => ({ words: (turn.thought ?? "").split(" ").length }),'),
  );
  const spec = specOf('Plain', 'plain.ts');
  expect(spec).toMatchObject({ source, scored: { environment: source, rewards: join(folder, 'plain.rewards.ts') } });
  const beside = (await loaded(spec)).environment!;
  expect(beside.version).not.toBe(environment!.version);
  expect(beside.files.toSorted()).toEqual([join(folder, 'plain.rewards.ts'), source]);
  await reset('Plain');
  expect((await step('Plain', [1])).components).toEqual({ words: 2 });
  const { sources } = sourceSnapshots(beside.source, beside.bundle);
  expect(sources.map(({ name }) => name)).toEqual(['plain.ts', 'plain.rewards.ts']);
  // A run that resumes elsewhere loads the stored bundle, which contains the rewards file.
  const built = { ...spec, built: { bundle: beside.bundle, files: beside.files } };
  rmSync(join(folder, 'plain.rewards.ts'));
  expect((await loaded({ ...built, tag: 'Kept' })).environment).toMatchObject({
    version: beside.version,
    components: { words: 1 },
  });
});

test('a built-in environment is scored by a rewards file of the workspace, with a version free of paths', async () => {
  const code = rewards('{ any: 1 }', '  score: () => ({ any: 7 }),');
  const versions = ['a', 'b/deeper'].map(async place => {
    write(`${place}/lake.rewards.ts`, code);
    const spec = specOf(`Lake${place[0]}`, 'frozen_lake', { rewards: { file: `${place}/lake.rewards.ts` } });
    return (await loaded(spec)).environment!;
  });
  const [one, other] = await Promise.all(versions);
  expect([one.name, one.source]).toEqual(['frozen_lake', join(folder, 'a/lake.rewards.ts')]);
  expect(one.version).toBe(other.version);
  expect(one.bundle.slice(0, one.bundle.lastIndexOf('//# sourceMappingURL'))).not.toContain(folder);
  await reset('Lakea');
  expect((await step('Lakea', [1])).components).toEqual({ any: 7 });
});

test('an error in a score function ends only its episode, with the line of the rewards file', async () => {
  write('bad.ts', counter());
  write(
    'bad.rewards.ts',
    rewards(
      '{ a: 1 }',
      `  score: turn => {
    if (turn.answer === 'Bad') throw new Error('no such answer');
    return { a: 1 };
  },
  scoreEpisode: () => new Promise(() => {}),`,
    ),
  );
  expect((await loaded(specOf('Bad', 'bad.ts'))).error).toBeUndefined();
  await Promise.all([reset('Bad', 'one'), reset('Bad', 'two')]);
  const failed = await step('one', [1], { answer: 'Bad' });
  expect(failed.error).toMatchObject({ kind: 'threw', at: `${join(folder, 'bad.rewards.ts')}:5` });
  expect(failed.error!.message).toMatch(
    /bad\.rewards\.ts:5\) threw "no such answer" in score\(\) at seed 3, member 1 after \[Add\]: fix/,
  );
  expect((await step('two', [1])).components).toEqual({ a: 1 });
  const episode = { turns: [], final_state: '', terminated: true, truncated: false, success: false };
  const [hung] = await running.step([{ episode: 'two', actions: [], score: { episode } }]);
  expect(hung.error).toMatchObject({ kind: 'timed_out' });
  expect(hung.error!.message).toContain('in scoreEpisode() at seed 3, member 1 after [Add]');
});

test.each([
  [
    '{ b: 1 }',
    'returned the reward component "b", which it does not declare, in score() at seed 3, member 1 after [Add]: declare it in components, or return one of a',
  ],
  ['{ a: NaN }', 'returned NaN as the reward component a in score()'],
  ['{ a: "1" }', 'returned "1" as the reward component a'],
  ['[1]', 'returned [1] from score'],
  ['undefined', 'returned missing from score'],
])('the value %s of a score function is refused', async (value, message) => {
  write('value.ts', counter());
  write('value.rewards.ts', rewards('{ a: 1 } as Record<string, number>', `  score: (): any => (${value}),`));
  await loaded(specOf('Value', 'value.ts'));
  await reset('Value');
  const { error, components } = await step('Value', [1]);
  expect(error?.message).toContain(message);
  expect(components).toBeUndefined();
});

test.each([
  ['export default {};', 'has a rewards file whose components are missing: end the rewards file with'],
  ['export const a = 1;', 'No matching export'],
  [rewards('{ a: 1 }', ''), 'has a rewards file without score and scoreEpisode'],
  [rewards('{ "a b": 1 }', '  score: () => ({}),'), 'declares the reward component "a b": use a name of letters'],
  [
    rewards('{ a: NaN }', '  score: () => ({}),'),
    'declares the reward component a with the weight NaN: set the weight to a finite number',
  ],
  [
    rewards('{ count: 1 }', '  score: () => ({}),'),
    'declares the reward component count, which its rewards file declares too: rename one of the two',
  ],
])('a rewards file is refused: %s', async (code, message) => {
  write('file.ts', scored('score: () => ({}),'));
  write('file.rewards.ts', code);
  expect((await loaded(specOf('File', 'file.ts'))).error).toContain(message);
});

test('an edit of the rewards file is checked, and used for later episodes only', async () => {
  write('live.ts', counter());
  const body = (value: string) => rewards('{ a: 1 }', `  score: () => ({ a: ${value} }),`);
  const file = write('live.rewards.ts', body('1'));
  const spec = specOf('Live', 'live.ts');
  await loaded(spec);
  await reset('Live', 'before');
  writeFileSync(file, body('"one"'));
  const [refused] = await running.prepare([spec], true);
  expect('problems' in refused && refused.problems[0]).toMatchObject({ file, line: 4, kind: 'type' });
  writeFileSync(file, body('2'));
  const [prepared] = await running.prepare([spec], true);
  if (!('environment' in prepared)) throw new Error(prepared.problems[0].message);
  await running.use([{ spec, environment: prepared.environment }]);
  await reset('Live', 'after');
  expect((await step('before', [1])).components).toEqual({ a: 1 });
  expect((await step('after', [1])).components).toEqual({ a: 2 });
  rmSync(file);
  const [gone] = await running.prepare([spec], false);
  expect('problems' in gone && gone.problems[0].message).toContain('does not exist: restore it');
});

test('a step whose process dies is repeated with its score', async () => {
  write('dies.ts', scored('score: () => ({ count }),'));
  await loaded(specOf('Dies', 'dies.ts'));
  await reset('Dies');
  await step('Dies', [1, 1]);
  process.kill(running.pid!, 'SIGKILL');
  expect(await step('Dies', [1])).toMatchObject({ observation: 'count 3', components: { count: 3 } });
});
