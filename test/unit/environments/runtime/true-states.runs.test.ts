// True states from the environment process: after a reset and after the actions of a step, in the form that was asked
// for; and the sentences about environments whose states or forms are wrong.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { environmentSpecs } from '../../../../extension/environments/client/environment-specs';
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

const stated = (state: string, forms = "{ structured: 'JSON' }") =>
  counter()
    .replace("name: 'counter',", `name: 'counter',\n  stateForms: ${forms},`)
    .replace('      step(action) {', `${state}\n      step(action) {`);
async function load(tag: string, text: string) {
  write(`${tag}.ts`, text);
  const { environments, error } = await running.load(
    environmentSpecs([tag], { [tag]: { env_type: `${tag}.ts` } }, join(root, 'envs'), folder),
  );
  return { environment: environments[0], error: error?.message };
}
const reset = async (tag: string) =>
  (await running.reset([{ episode: tag, tag, seed: 3, member: 0, mode: 'train', state_form: 'structured' }]))[0];
const step = async (episode: string, actions: number[]) =>
  (await running.step([{ episode, actions, state_form: 'structured' }]))[0];

test('the true state follows the actions', async () => {
  const { environment } = await load('Own', stated('state: async form => `${form} ${count}`,'));
  expect(environment.state_forms).toEqual({ structured: 'JSON' });
  expect((await reset('Own')).true_state).toBe('structured 0');
  expect((await step('Own', [1, 1])).true_state).toBe('structured 2');
  expect((await step('Own', [])).true_state).toBe('structured 2');
  const [plain] = await running.step([{ episode: 'Own', actions: [1] }]);
  expect(plain).not.toHaveProperty('true_state');
});

test('a faulty state ends the episode with its sentence', async () => {
  await load('Wrong', stated('state: () => count < 1 ? "0" : (7 as never),'));
  expect((await reset('Wrong')).true_state).toBe('0');
  const { error } = await step('Wrong', [1]);
  expect(error?.message).toMatch(/returned 7 from state .* at seed 3, member 0 .*: return a text/);
});

test('forms must fit the environment', async () => {
  const { error } = await load('Without', stated(''));
  expect(error).toMatch(/declares stateForms, but has no method state\(form\)/);
  const { error: unknown } = await load('Unknown', stated('state: () => "",', '{ verse: "rhymes" } as never'));
  expect(unknown).toMatch(/has the stateForms \{"verse":"rhymes"\}/);
});

test('a method state without declared forms is ignored', async () => {
  const { environment, error } = await load(
    'Older',
    stated('state: () => count as never,').replace(/\n {2}stateForms: .*,/, ''),
  );
  expect(error).toBeUndefined();
  expect(environment).not.toHaveProperty('state_forms');
  const [begun] = await running.reset([{ episode: 'Older', tag: 'Older', seed: 3, member: 0, mode: 'train' }]);
  expect(begun.error).toBeUndefined();
});
