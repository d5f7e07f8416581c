// Lines that episodes execute, counted in the environment's thread and reported by source line.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CoveredCode } from '../../../../extension/protocol/environment-link';
import { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { root, workspace } from '../../../support/bundles';

const { folder, write } = workspace();
const helper = write('lib/twice.ts', `export function twice(x: number): number {\n  return 2 * x;\n}\n`);
const source = write(
  'env.ts',
  `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { twice } from './lib/twice';

interface Place {
  x: number;
}
export default defineEnvironment({
  name: 'line',
  config: z.object({}),
  instruction: '',
  create() {
    const place: Place = { x: 0 };
    return {
      reset: () => ({ observation: 'start' }),
      step(action) {
        if (action === 'jump') {
          place.x = twice(place.x);
          return { observation: 'jumped', reward: 5, terminated: true, truncated: false, info: {} };
        }
        place.x++;
        const reward = place.x > 100 ? 1 : 0;
        return { observation: 'walked', reward, terminated: false, truncated: false, info: {} };
      },
    };
  },
});
`,
);
let running: EnvironmentProcess;
beforeAll(async () => {
  running = await EnvironmentProcess.start({
    entry: join(root, 'dist/environment-host.cjs'),
    variables: process.env,
    stepTimeoutMs: 5000,
    onNotice: () => undefined,
  });
  await running.load([{ tag: 'T', env_type: 'env.ts', source, config: {} }]);
});
afterAll(async () => {
  await running.stop();
  rmSync(folder, { recursive: true, force: true });
});
const reset = (episode: string) => running.reset([{ episode, tag: 'T', seed: 1, member: 0, mode: 'train' }]);
const step = (episode: string, ...actions: string[]) => running.step([{ episode, actions }]);
const linesOf = (covered: readonly CoveredCode[], file: string) =>
  new Map(covered[0].files.find(each => each.file === file)!.lines.map(([line, ...counts]) => [line, counts]));

test('counts include only episodes that begin after coverage is switched on, and are reported once', async () => {
  await reset('before');
  expect(await running.cover(true)).toEqual([]);
  await step('before', 'walk');
  await reset('a');
  await step('a', 'walk', 'walk', 'walk');
  const covered = await running.cover(true);
  expect(covered).toEqual([expect.objectContaining({ tag: 'T', version: expect.stringMatching(/^[0-9a-f]{16}$/) })]);
  const lines = linesOf(covered, source);
  expect(lines.get(17)).toEqual([3, 3]); // if
  expect(lines.get(18)).toEqual([0, 0]);
  expect(lines.get(19)).toEqual([0, 0]);
  expect(lines.get(14)).toEqual([2, 2]); // return: once to try the reloaded code, once for the episode
  expect(lines.get(21)).toEqual([3, 3]);
  expect(lines.get(22)).toEqual([3, 0]); // no episode reached the reward of 1
  expect(lines.get(6)).toBeUndefined(); // a type
  expect(lines.get(20)).toBeUndefined(); // a bracket
  expect(linesOf(covered, helper).get(2)).toEqual([0, 0]);

  await step('a', 'jump');
  const next = await running.cover(true);
  expect(linesOf(next, source).get(18)).toEqual([1, 1]);
  expect(linesOf(next, source).get(19)).toEqual([1, 1]);
  expect(linesOf(next, source).get(21)).toEqual([0, 0]);
  expect(linesOf(next, helper).get(2)).toEqual([1, 1]);
});

test('after it is switched off, the last counts are reported once and no more follow', async () => {
  await reset('b');
  await step('b', 'walk');
  expect(linesOf(await running.cover(false), source).get(21)).toEqual([1, 1]);
  await reset('c');
  await step('c', 'walk');
  await running.closeEpisodes(['a', 'b', 'before']);
  expect(await running.cover(false)).toEqual([]);
});

test('code that was loaded, but whose episodes have taken no step, is not counted yet; no count is lost', async () => {
  await running.cover(true);
  await reset('d');
  expect(await running.cover(true)).toEqual([]);
  await step('d', 'walk');
  const covered = await running.cover(true);
  expect(linesOf(covered, source).get(14)).toEqual([2, 2]); // of the load and of the reset
  expect(linesOf(covered, source).get(21)).toEqual([1, 1]);
  expect(await running.cover(true)).toEqual([]);
});
