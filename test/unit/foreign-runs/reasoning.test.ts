// Reasoning that a trainer stores beside the text of a message is the thought of the turn, in each adapter whose files
// contain messages. The dumps of verl and SkyRL are texts with tags; summaries of tinker-cookbook have no texts.
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { expect, it } from 'vitest';
import { chatMessages } from '../../../extension/foreign-runs/chat-turns';
import { attachOnce } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written

function write(name: string, text: string): void {
  const file = join(workspace(), 'run', name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  utimesSync(file, old, old);
}

const prompt = { role: 'user', content: 'Where?' };
const forms = {
  reasoning_content: { role: 'assistant', content: 'Down', reasoning_content: 'The goal is below.' },
  reasoning: { role: 'assistant', content: 'Down', reasoning: 'The goal is below.' },
  'thinking part': {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'The goal is below.' },
      { type: 'text', text: 'Down' },
    ],
  },
  'reasoning part': {
    role: 'assistant',
    content: [
      { type: 'reasoning', reasoning: 'The goal is below.' },
      { type: 'text', text: 'Down' },
    ],
  },
};

/** Files of each adapter with one rollout that has this response. */
const files: Record<string, (response: object) => Record<string, string>> = {
  ragen: response => ({
    'val_rollouts_20261122_100000.jsonl': `${JSON.stringify({ custom_id: 'traj_0', messages: [prompt, response], metadata: { total_reward: 1, group_id: 0 } })}\n`,
  }),
  vagen: response => ({
    'tag_lake/Lake_seed_0/metrics.json': JSON.stringify({ cumulative_reward: 1, success: true, seed: 0 }),
    'tag_lake/Lake_seed_0/messages.json': JSON.stringify([prompt, response]),
  }),
  'prime-rl': response => ({
    'rollouts/step_1/train/effective/traces.jsonl': `${JSON.stringify(traced(response))}\n`,
  }),
  verifiers: response => ({ 'traces.jsonl': `${JSON.stringify(traced(response))}\n` }),
  'verifiers, before 0.4': response => ({
    'results.jsonl': `${JSON.stringify({ example_id: 0, prompt: [prompt], completion: [response], reward: 1 })}\n`,
  }),
  'json-lines': response => ({
    'rollouts.jsonl': `${JSON.stringify({ step: 1, messages: [prompt, response], reward: 1 })}\n`,
  }),
};

const traced = (response: object) => ({
  ...{ id: 'e', env: { id: 'lake' }, group: { id: 'g' }, task: { data: {}, hash: 'h' } },
  traces: [
    {
      version: 1,
      nodes: [
        { message: prompt, sampled: false },
        { parent: 0, message: response, sampled: true },
      ],
      rewards: { goal: { score: 1, weight: 1 } },
    },
  ],
});

const cases = Object.keys(files).flatMap(trainer => Object.keys(forms).map(form => [trainer, form] as const));

it.each(cases)('%s: %s', async (trainer, form) => {
  for (const [name, text] of Object.entries(files[trainer](forms[form as keyof typeof forms]))) write(name, text);
  const { adapter, episodes } = await attachOnce(workspace(), join(workspace(), 'run'));
  expect(adapter).toBe(trainer.replace(/,.*/, ''));
  const [{ turns, messages }] = Object.values(episodes)[0];
  expect(turns).toMatchObject([{ thought: 'The goal is below.', answer: 'Down' }]);
  expect(messages.at(-1)).toEqual({ role: 'assistant', content: '<think>The goal is below.</think>Down' });
});

it.each(['reasoning_content', 'reasoning'])('trl: %s in messages of completions', async field => {
  mkdirSync(join(workspace(), 'run/completions'), { recursive: true });
  const file = join(workspace(), 'run/completions/completions_00001.parquet');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run(
    `COPY (SELECT 1 AS step, [{role: 'user', content: 'Where?'}] AS prompt,
       [{role: 'assistant', content: 'Down', ${field}: 'The goal is below.'}] AS completion,
       1.0::DOUBLE AS goal_reward, 0.5::DOUBLE AS advantage) TO '${file}' (FORMAT parquet)`,
  );
  connection.closeSync();
  utimesSync(file, old, old);
  const { adapter, episodes } = await attachOnce(workspace(), join(workspace(), 'run'));
  expect(adapter).toBe('trl');
  expect(episodes['step-000001'][0].turns).toMatchObject([
    { thought: 'The goal is below.', answer: 'Down', reward: 1 },
  ]);
});

it('a field of its own precedes parts; values that are no texts are no reasoning', () => {
  const [first, second] = chatMessages([
    { ...forms['thinking part'], reasoning_content: 'a field' },
    { role: 'assistant', content: 'Down', reasoning: { effort: 'low' }, reasoning_content: 7 },
  ]);
  expect(first).toEqual({ role: 'assistant', content: 'Down', reasoning: 'a field' });
  expect(second).toEqual({ role: 'assistant', content: 'Down' });
});
