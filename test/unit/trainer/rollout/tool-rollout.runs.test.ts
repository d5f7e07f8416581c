// Rollouts with tools over a real environment process, with the tokenizers of Qwen2.5, Qwen3 and Llama 3 and a tokenizer
// without tools. The sampled ids are the trained ids, results are not trained on, and the record keeps every call.
import { rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GeneratedRow, GenerationRow } from '../../../../extension/engine/generation-calls';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import type { ChatTokenizer } from '../../../../extension/models/tokenizer/chat-tokenizer';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import type { LoadedEnvironment } from '../../../../extension/protocol/environment-link';
import { episodeSchema } from '../../../../extension/run-data/episode';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { episodeRecord } from '../../../../extension/trainer/rollout/episode-record';
import type { RolloutEpisode } from '../../../../extension/trainer/rollout/rollout-batch';
import { buildEntry } from '../../../support/bundles';
import { corridorOptions } from './scripted-rollout';

let entry: string;
let pool: EnvironmentProcessPool;
let environments: LoadedEnvironment[];

beforeAll(async () => {
  entry = await buildEntry();
  pool = await EnvironmentProcessPool.start(
    { entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined },
    { Table: 1 },
  );
  const source = resolve('envs/table-questions/index.ts');
  ({ environments } = await pool.load([
    { tag: 'Table', env_type: 'table_questions', source, config: { kinds: ['total'] } },
  ]));
});
afterAll(async () => {
  await pool.stop();
  rmSync(dirname(entry), { recursive: true, force: true });
});

type Script = (prompt: string, turn: number) => string;

/** Samples the texts of a script, one character per token where possible, so that the ids are not the usual ones. */
function generatorOf(tokenizer: ChatTokenizer, script: Script) {
  const turns = new Map<string, number>();
  const appended: string[] = [];
  return {
    appended,
    async generate(rows: readonly GenerationRow[]): Promise<GeneratedRow[]> {
      return rows.map(({ row, append }) => {
        const turn = (turns.get(row) ?? 0) + 1;
        turns.set(row, turn);
        const prompt = tokenizer.decode(append, { special: true });
        if (row.endsWith('m00')) appended.push(prompt);
        const parts = script(prompt, turn).split(/(<\|python_tag\|>|<\/?[a-z_]+>)/);
        const ids = parts
          .flatMap(part => (part.startsWith('<') ? [part] : [...part]))
          .flatMap(part => tokenizer.encode(part));
        ids.push(tokenizer.stopTokenIds[0]);
        return { row, ids, logprobs: ids.map((_, i) => -0.1 * (i % 5) - 0.1), finish: 'stop' as const };
      });
    },
    release: () => undefined,
  };
}

async function rollout(
  tokenizer: ChatTokenizer,
  script: Script,
  changes: { max_model_len?: number; enable_think?: boolean } = {},
) {
  const options = corridorOptions();
  const { max_model_len = 20_000, enable_think = false } = changes;
  const generator = generatorOf(tokenizer, script);
  const groups = { env_groups: 1, group_size: 2, env_configs: { tags: ['Table'], n_groups: [1] } };
  const agent = new AgentProxy(generator, pool, tokenizer, {
    ...options,
    agent_proxy: { ...options.agent_proxy, enable_think, max_turn: 6 },
    rollout: { ...options.rollout, max_model_len, response_length: 200 },
    es_manager: { ...options.es_manager, train: groups, format_penalty: -0.5 },
    custom_envs: { Table: { max_actions_per_traj: 6 } },
  });
  const batch = await agent.rollout({ mode: 'train', step: 1, environments, seed: 3 });
  return { ...batch, appended: generator.appended };
}

const question = /What do (\d+) (\w+) and (\d+) (\w+) cost\?/;

/** Plays as a model that looks both prices up, computes, and answers with what the tools said. */
function playing(write: (calls: { name: string; arguments: object }[]) => string): Script {
  let [m, a, n, b]: string[] = [];
  return (prompt, turn) => {
    const results = [...prompt.matchAll(/^"?(\d+)"?(?=$|<)/gm)].map(([, value]) => value);
    if (turn === 1) {
      [, m, a, n, b] = question.exec(prompt)!;
      return write([a, b].map(item => ({ name: 'lookup', arguments: { item, column: 'price' } })));
    }
    if (turn === 2)
      return write([{ name: 'calculate', arguments: { expression: `${m} * ${results[0]} + ${n} * ${results[1]}` } }]);
    return `It is <answer>${results[0]}</answer>`;
  };
}
const hermes = playing(calls => calls.map(call => `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`).join('\n'));
const llama = playing(
  calls =>
    `<|python_tag|>${calls.map(({ name, arguments: parameters }) => JSON.stringify({ name, parameters })).join('; ')}`,
);

/** The text of the tokens whose mask has a value. */
const textWhere = (tokenizer: ChatTokenizer, { samples: [{ ids, mask }] }: RolloutEpisode, value: 0 | 1): string =>
  tokenizer.decode(
    [...ids].filter((_, i) => mask[i] === value),
    { special: true },
  );

describe.each([
  ['qwen2.5', 'test/golden/chat/qwen2.5', hermes, /<tool_response>\n\d+\n<\/tool_response>\n<tool_response>/],
  ['qwen3', 'test/golden/chat/qwen3', hermes, /<tool_response>\n\d+\n<\/tool_response>\n<tool_response>/],
  [
    'llama3',
    'test/golden/chat/llama3',
    llama,
    /ipython<\|end_header_id\|>\n\n"\d+"<\|eot_id\|><\|start_header_id\|>ipython/,
  ],
  [
    'a template without tools',
    'media/models/ragen-tiny',
    hermes,
    /<\|im_start\|>user\n<tool_response>\n\d+\n<\/tool_response>\n<tool_response>/,
  ],
] as const)('%s', (_, folder, script, results) => {
  const tokenizer = readTokenizer(folder, { variables: { date_string: '26 Jul 2024' } });

  it('plays calls and answers, and trains on the sampled ids only', async () => {
    const { episodes, appended, metrics } = await rollout(tokenizer, script);
    for (const episode of episodes) {
      expect([episode.success, episode.reward, episode.penalty, episode.turns.length]).toEqual([true, 1, 0, 3]);
      expect(episode.samples).toHaveLength(1);
      const [{ ids, mask, turns }] = episode.samples;
      for (const { span } of turns) expect(mask.slice(...span).every(bit => bit === 1)).toBe(true);
      const trained = textWhere(tokenizer, episode, 1);
      expect(trained).toContain('"calculate"');
      expect(trained).not.toMatch(/tool_response|ipython/);
      expect(textWhere(tokenizer, episode, 0)).toMatch(results);
      // the ids are those that were sampled: character by character, not the tokenizer's own
      const [from, to] = turns[0].span;
      expect([...ids.slice(from, to)]).not.toEqual([
        ...tokenizer.encode(tokenizer.decode([...ids.slice(from, to)], { special: true })),
      ]);
      expect(episode.turns.map(turn => turn.calls?.map(({ name }) => name))).toEqual([
        ['lookup', 'lookup'],
        ['calculate'],
        undefined,
      ]);
      expect(episode.messages.map(({ role }) => role).slice(0, 3)).toEqual(['system', 'user', 'assistant']);
    }
    expect(appended[0]).toContain('calculate');
    expect(appended[1]).toMatch(results);
    expect(metrics).toMatchObject({ 'Table/tool_calls': 3, 'Table/failed_tool_calls': 0 });
    expect(metrics['Table/tool_call_ms']).toBeGreaterThanOrEqual(0);
    const record = episodeSchema.parse(JSON.parse(JSON.stringify(episodeRecord(episodes[0]))));
    expect(record.turns[0].calls?.[0]).toMatchObject({ name: 'lookup', arguments: { column: 'price' }, error: false });
  });
});

const tokenizer = readTokenizer('test/golden/chat/qwen2.5');

it('sends a malformed call’s problem back as its result, with the format penalty', async () => {
  const { episodes, appended, metrics } = await rollout(tokenizer, (_, turn) =>
    turn === 1
      ? '<tool_call>{"name": "lookup"</tool_call><tool_call>{"name": "fly", "arguments": {}}</tool_call>'
      : '<answer>1</answer>',
  );
  expect(appended[1]).toContain('<tool_response>\nError: the tool call is not a JSON object of the form');
  expect(appended[1]).toContain('Error: there is no tool "fly": use one of calculate, lookup.');
  expect(episodes[0].turns.map(({ penalty }) => penalty)).toEqual([-0.5, 0]);
  expect(metrics).toMatchObject({ 'Table/tool_calls': 2, 'Table/failed_tool_calls': 1 });
});

it('asks again after a response without a call and without an answer', async () => {
  const { episodes, appended } = await rollout(tokenizer, (_, turn) => (turn === 1 ? 'Hm.' : '<answer>1</answer>'));
  expect(appended[1]).toContain('held neither a tool call nor an answer');
  expect(episodes[0].turns[0]).toMatchObject({ executed: [], penalty: -0.5, info: { manager_invalid_action: true } });
});

it('takes calls only after a closed thought if the model has to think', async () => {
  const call = '<tool_call>{"name": "calculate", "arguments": {"expression": "1+1"}}</tool_call>';
  const { episodes } = await rollout(
    tokenizer,
    (_, turn) => [`I think ${call}`, `I call.</think>${call}`, `x</think><answer>1</answer>`][turn - 1],
    { enable_think: true },
  );
  expect(episodes[0].turns.map(({ thought, calls }) => [thought, calls?.length])).toEqual([
    [null, undefined],
    ['I call.', 1],
    ['x', undefined],
  ]);
  expect(episodes[0].turns[1].calls?.[0].result).toBe('2');
});

it('leaves out the oldest calls, but never the task, if the chat is too long', async () => {
  const call = `<tool_call>{"name": "calculate", "arguments": {"expression": "${'1+'.repeat(60)}1"}}</tool_call>`;
  const script: Script = (_, turn) => (turn < 6 ? call : '<answer>1</answer>');
  const { episodes, appended } = await rollout(tokenizer, script, { max_model_len: 1400 });
  const [{ samples, context_shortened, turns }] = episodes;
  expect([context_shortened, samples.length > 1, turns.length]).toEqual([true, true, 6]);
  expect(appended.at(-1)).toMatch(question);
  expect(appended.at(-1)?.match(/<tool_response>/g)?.length).toBeLessThan(5);
});
