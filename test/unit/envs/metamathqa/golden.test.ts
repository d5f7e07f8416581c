// Questions, verdicts and rewards of metamathqa and static equal RAGEN's procedure
// (test/golden/make/envs_questions.py), seed by seed.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/questions.json';
import type { StepResult } from '../../../../envs/api/environment';
import metamathqa from '../../../../envs/metamathqa/index';
import staticQuestions from '../../../../envs/static/index';
import { resultOf } from '../../../../envs/static/scoring';

type Row = [seed: number, index: number, right: string, given: string[], rewards: string];

const rowsOf = (name: string) =>
  readFileSync(join(__dirname, `../../../../media/data/${name}.jsonl`), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, string>);

describe.each([
  ['metamathqa', () => metamathqa.create(metamathqa.config.parse({})), rowsOf('metamathqa')],
  ['static metamathqa', () => staticQuestions.create(staticQuestions.config.parse({})), rowsOf('metamathqa')],
  [
    'static gsm8k',
    () => staticQuestions.create(staticQuestions.config.parse({ dataset_name: 'gsm8k' })),
    rowsOf('gsm8k'),
  ],
  [
    'static mmlu',
    () => staticQuestions.create(staticQuestions.config.parse({ dataset_name: 'mmlu' })),
    rowsOf('abstract-algebra'),
  ],
] as const)('%s', (name, create, rows) => {
  test.each(golden[name] as Row[])('seed %i plays as recorded', async (seed, index, right, given, rewards) => {
    const environment = create();
    const { observation } = await environment.reset({ seed });
    const { query, question } = rows[index];
    expect(String(observation).startsWith(query ?? question)).toBe(true);
    expect(await environment.solve!()).toEqual([right]);
    const steps = given.map(answer => environment.step(answer) as StepResult);
    expect(steps.map(({ reward, info }) => `${info.action_is_valid ? '' : '-'}${reward}`).join(' ')).toBe(
      rewards.replaceAll('1.0', '1'),
    );
    for (const { observation, terminated, reward } of steps) {
      expect(terminated).toBe(reward > 0);
      expect(observation).toBe(reward > 0 ? 'Correct!' : 'Incorrect. Please think again.');
    }
  });
});

test.each(golden.results)('the result of %j is read as recorded', (text, result) => {
  expect(resultOf(text)).toBe(result);
});
