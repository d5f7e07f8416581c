// Environments with roles in the environment process: the declaration, the turn that follows a reset or a step, rewards
// by role, the refusal of wrong values, and the contract check.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { EnvironmentDefinition } from '../../../../envs/api/environment';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { environmentSpecs } from '../../../../extension/environments/client/environment-specs';
import { checkContract } from '../../../../extension/environments/runtime/contract/contract';
import { root, startProcess, workspace } from '../../../support/bundles';

let running: EnvironmentProcess;
const { folder, write } = workspace();
beforeAll(async () => {
  ({ running } = await startProcess(join(root, 'dist/environment-host.cjs')));
});
afterAll(async () => {
  await running.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Two roles count in turns; who says 3 wins. `next` is the code of what a step says about roles. */
const race = (next: string, roles = "{ odd: {}, even: { instruction: 'Answer second.' } }") => `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
export default defineEnvironment({
  name: 'race',
  config: z.object({}),
  instruction: 'Count.',
  actions: { 1: 'One', 2: 'Two' },
  roles: ${roles},
  create() {
    let said = 0;
    return {
      reset: () => ((said = 0), { observation: 'said 0', role: 'odd', actions: { 1: 'One' } }),
      step() {
        said++;
        const terminated = said === 3;
        return { observation: 'said ' + said, reward: terminated ? 1 : 0, terminated, truncated: false, info: {}, ...(${next}) };
      },
    };
  },
});
`;
const sound =
  "{ role: said % 2 ? 'even' : 'odd', actions: { 2: 'Two' }, ...(terminated && { roles: { odd: { success: true }, even: { reward: -1, success: false } } }) }";
const load = async (tag: string, code: string) => {
  write(`${tag}.ts`, code);
  const specs = environmentSpecs([tag], { [tag]: { env_type: `${tag}.ts` } }, join(root, 'envs'), folder);
  return running.load(specs);
};
const play = async (tag: string, actions: number[]) => {
  const [first] = await running.reset([{ episode: tag, tag, seed: 1, member: 0, mode: 'train' }]);
  const [step] = await running.step([{ episode: tag, actions }]);
  return { first, step };
};

test('the roles, the next turn with its legal actions, and the outcomes by role reach the trainer', async () => {
  const { environments, error } = await load('race', race(sound));
  expect(error).toBeUndefined();
  expect(environments[0].roles).toEqual([{ name: 'odd' }, { name: 'even', instruction: 'Answer second.' }]);
  const { first, step } = await play('race', [1]);
  expect([first.role, first.actions]).toEqual(['odd', { 1: 'One' }]);
  expect([step.role, step.actions, step.outcomes[0].roles]).toEqual(['even', { 2: 'Two' }, undefined]);
  const [over] = await running.step([{ episode: 'race', actions: [2, 2] }]);
  expect(over.role).toBeUndefined();
  expect(over.outcomes[1]).toMatchObject({
    reward: 1,
    roles: { odd: { success: true }, even: { reward: -1, success: false } },
  });
});

test.each([
  [
    'unknown',
    "{ role: 'third' }",
    /returned the role "third" in step\(One\) at seed 1.*: return one of odd, even as the role/,
  ],
  ['missing', '{}', /returned the role missing in step.*: return one of odd, even/],
  [
    'foreign',
    "{ role: 'odd', roles: { third: {} } }",
    /returned an outcome for the role "third" in step.*: use one of odd, even/,
  ],
  ['infinite', "{ role: 'odd', roles: { odd: { reward: 1 / 0 } } }", /returned the reward Infinity for the role odd/],
])('a step with an %s role ends its episode with one sentence', async (tag, next, message) => {
  await load(tag, race(next));
  const { step } = await play(tag, [1]);
  expect(step.error?.message).toMatch(message);
});

test('a declaration that is no object of named roles, or that has tools, is refused at load', async () => {
  const { error } = await load('listed', race(sound, "['odd']"));
  expect(error?.message).toMatch(/declares the roles \["odd"\]: declare 1 to 16 roles by name/);
  const tools =
    "import { defineTool } from 'ragen-workbench/api/tools/tool';\n" +
    race(sound).replace(
      'reset: ()',
      "tools: { look: defineTool({ description: 'Looks.', parameters: z.object({}), run: () => 'x' }) }, reset: ()",
    );
  expect((await load('tools', tools)).error?.message).toMatch(/declares roles and tools: remove one of them/);
});

test('the contract check reports the roles that it has seen, and a role that is not declared', async () => {
  const definition = (next: string): EnvironmentDefinition => ({
    name: 'race',
    config: z.object({}),
    instruction: '',
    actions: { 1: 'One' },
    roles: { odd: {}, even: {} },
    create() {
      let said = 0;
      return {
        reset: () => ((said = 0), { observation: 'said 0', role: 'odd' }),
        step() {
          if (said === 3) throw new Error('the episode is over');
          const role = ++said % 2 ? next : 'odd';
          return { observation: `said ${said}`, reward: 0, terminated: said === 3, truncated: false, info: {}, role };
        },
      };
    },
  });
  const options = { seeds: 2, steps: 9, budgetMs: 5000, announce: () => undefined };
  const resultOf = async (next: string) =>
    (await checkContract(definition(next), {}, options)).find(({ name }) => name.startsWith('each turn'))!;
  expect(await resultOf('even')).toMatchObject({ state: 'passed', evidence: 'Seen: odd, even.' });
  const { state, evidence } = await resultOf('none');
  expect([state, evidence]).toEqual([
    'failed',
    'step(One) returned the role "none" at seed 1 after [One]: return one of odd, even as the role whose turn is next.',
  ]);
});

test("the guide's example meets the contract in the environment process", async () => {
  const guide = readFileSync(join(root, 'docs/environments/multi-agent.md'), 'utf8');
  const { error } = await load('order', /```ts\n([\s\S]*?)```/.exec(guide)![1]);
  expect(error).toBeUndefined();
  const step = async (action: string) => (await running.step([{ episode: 'order', actions: [action] as never }]))[0];
  await running.reset([{ episode: 'order', tag: 'order', seed: 5, member: 0, mode: 'train' }]);
  expect(await step('What would you like?')).toMatchObject({
    role: 'user',
    observation: 'You want coffee. The waiter says: What would you like?',
  });
  expect(await step('Something warm with milk.')).toMatchObject({ role: 'agent' });
  const { outcomes } = await step('coffee');
  expect(outcomes[0]).toMatchObject({
    reward: 1,
    terminated: true,
    roles: { agent: { success: true }, user: { reward: 1, success: true } },
  });
});
