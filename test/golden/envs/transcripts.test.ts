// Complete episodes as text, which document the model's view: instruction, observations, actions, rewards. After an
// intended change, run `npx vitest run test/golden/envs -u` and review the diff.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ActionLookup, EnvironmentDefinition } from '../../../envs/api/environment';
import bandit from '../../../envs/bandit/index';
import countdown from '../../../envs/countdown/index';
import fileSystem from '../../../envs/file-system/index';
import frozenLake from '../../../envs/frozen-lake/index';
import game2048 from '../../../envs/game-2048/index';
import metamathqa from '../../../envs/metamathqa/index';
import nim from '../../../envs/nim/index';
import noisyLake from '../../../envs/noisy-lake/index';
import rubikscube from '../../../envs/rubikscube/index';
import search from '../../../envs/search/index';
import smallWeb from '../../../envs/small-web/index';
import sokoban from '../../../envs/sokoban/index';
import webshop from '../../../envs/webshop/index';
import staticQuestions from '../../../envs/static/index';
import sudoku from '../../../envs/sudoku/index';
import tableQuestions from '../../../envs/table-questions/index';
import { declaredTools } from '../../../extension/environments/runtime/tools/declared-tools';
import { withTools } from '../../../extension/environments/runtime/tools/tool-environment';
import { partial } from '../../support/partial';

/** Plays an episode with the given actions, or with the solver's if there are none. */
async function episode(definition: EnvironmentDefinition, given: object, seed: number, member: number, actions?: (number | string)[]): Promise<string> {
  const config = definition.config.parse(given);
  const resolve = <T>(value: T | ((config: unknown) => T)) => (value instanceof Function ? value(config) : value);
  const names: ActionLookup = resolve(definition.actions) ?? {};
  const created = definition.create(config);
  const tools = declaredTools(created.tools);
  const environment = tools.size > 0 ? withTools(created, () => tools) : created;
  const text = [
    `${definition.name} ${JSON.stringify(given)}, seed ${seed}, member ${member}`,
    `instruction: ${resolve(definition.instruction)}`,
    `legend: ${JSON.stringify(definition.legend?.(config) ?? {})}`,
    String((await environment.reset({ seed, member })).observation),
  ];
  for (const action of actions ?? (await environment.solve!())!) {
    const { observation, reward, terminated, truncated, info } = await environment.step(action);
    const ended = terminated ? ', terminated' : truncated ? ', truncated' : '';
    text.push(`> ${names[action as number] ?? action}: reward ${reward}${ended}, ${JSON.stringify(info)}`, String(observation));
    if (ended) break;
  }
  return `${text.join('\n')}\n`;
}

test.each([
  ['sokoban-simple', sokoban, { num_boxes: 1 }, 10000, undefined],
  ['sokoban-larger', sokoban, { dim_room: [8, 8], num_boxes: 2, search_depth: 10 }, 3, undefined],
  ['sokoban-coordinates', sokoban, { num_boxes: 1, observation_format: 'grid_coord' }, 10001, [1, 1, 4]],
  ['frozen-lake-dry', frozenLake, { is_slippery: false, p: 0.7 }, 10009, undefined],
  ['frozen-lake-slippery', frozenLake, { success_rate: 0.8, p: 0.8 }, 10003, [1, 2]],
  ['frozen-lake-coordinates', frozenLake, { observation_format: 'coord' }, 10001, [3, 2]],
  ['noisy-lake', noisyLake, { is_slippery: false, slip: 0.5 }, 10003, [1, 1, 2, 2]],
  ['nim', nim, {}, 10000, undefined],
  ['nim-perfect-opponent', nim, { opponent: 'perfect' }, 10001, undefined],
  ['bandit', bandit, {}, 10000, undefined],
  ['search', search, {}, 10004, undefined],
  ['search-free-text', search, { max_search_results: 1 }, 10001, ['', 'search[island]', 'I think the answer is Jorstad.']],
  ['game-2048', game2048, {}, 10000, [3, 3, 0, 3, 0, 1]],
  ['rubikscube', rubikscube, { scramble_depth: 2 }, 10001, undefined],
  ['rubikscube-truncated', rubikscube, { scramble_depth: 1, max_steps: 2 }, 10000, [1, 3]],
  ['sudoku', sudoku, { grid_size: 4, render_format: 'with_feedback' }, 10000, undefined],
  ['sudoku-detailed', sudoku, {}, 10000, ['place 5 at row 2 col 3', '1,1,1', '1 1 1', '9 at 2,9']],
  ['sudoku-simple', sudoku, { difficulty: 'hard', unique_solution: true, render_format: 'simple' }, 123, ['2,3,5']],
  ['countdown', countdown, {}, 10000, undefined],
  ['countdown-wrong', countdown, {}, 10001, ['72 + 68 - 41']],
  ['metamathqa', metamathqa, {}, 10000, ['50', ' 8 0 ']],
  ['static-gsm8k', staticQuestions, { dataset_name: 'gsm8k' }, 10000, undefined],
  ['static-mmlu', staticQuestions, { dataset_name: 'mmlu' }, 10000, ['Answer: D', 'D', 'C', 'B', 'A']],
  ['webshop', webshop, {}, 10004, undefined],
  ['table-questions', tableQuestions, { kinds: ['total'] }, 10000, undefined],
  ['file-system', fileSystem, { kinds: ['tidy'], files: 6 }, 10000, undefined],
  ['small-web', smallWeb, { kinds: ['order'] }, 10000, undefined],
  ['bandit-test', bandit, { split: 'test' }, 123, ['Dragon', 'secretary']],
] as const)('the episode %s equals its stored transcript', async (name, definition, config, seed, actions) => {
  const text = await episode(partial<EnvironmentDefinition>(definition), config, seed, 1, actions && [...actions]);
  await expect(text).toMatchFileSnapshot(`transcripts/${name}.txt`);
});

/** Environments whose episodes come from a server, or from the user's program. */
const remote = ['alfworld', 'program', 'remote', 'verifiers'];

test('every registered environment has a transcript', () => {
  const registry = JSON.parse(readFileSync(join(__dirname, '../../../envs/registry.json'), 'utf8')) as Record<string, string>;
  const files = readdirSync(join(__dirname, 'transcripts'));
  const missing = Object.keys(registry).filter(name => !files.some(file => file.startsWith(name.replaceAll('_', '-'))));
  expect(missing).toEqual(remote);
});
