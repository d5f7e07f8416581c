// Unmodified agents from npm as programs: the Vercel AI SDK and the OpenAI Agents SDK. With scripted replies, their tool
// loops, streams and parallel sub-agents are stitched into the samples that they should be. With the bundled model, the
// agents of examples/agents are trained.
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import type { GeneratedRow, GenerationRow } from '../../../../extension/engine/generation-calls';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { buildEntry } from '../../../support/bundles';
import { keepAll, trainHere } from '../../../support/train-here';
import { groupOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';
import { corridorOptions } from '../../trainer/rollout/scripted-rollout';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

/** Agents that ask for a sum with a tool; the exit code says whether the final text has it. */
const agents = {
  'Vercel AI SDK': `
    import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
    import { generateText, stepCountIs, tool } from 'ai';
    import { z } from 'zod';
    const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
    const { text } = await generateText({
      model: createOpenAICompatible({ name: 'local', baseURL, apiKey })('policy'),
      prompt: 'What is 1 + 2?',
      tools: {
        add: tool({
          description: 'Adds.',
          inputSchema: z.object({ a: z.number(), b: z.number() }),
          execute: async ({ a, b }) => String(a + b),
        }),
      },
      stopWhen: stepCountIs(4),
    });
    process.exit(text.includes('3') ? 0 : 1);`,
  'Vercel AI SDK, streamed': `
    import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
    import { stepCountIs, streamText, tool } from 'ai';
    import { z } from 'zod';
    const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
    const result = streamText({
      model: createOpenAICompatible({ name: 'local', baseURL, apiKey, includeUsage: true })('policy'),
      prompt: 'What is 1 + 2?',
      tools: {
        add: tool({
          description: 'Adds.',
          inputSchema: z.object({ a: z.number(), b: z.number() }),
          execute: async ({ a, b }) => String(a + b),
        }),
      },
      stopWhen: stepCountIs(4),
    });
    let text = '';
    for await (const part of result.textStream) text += part;
    process.exit(text.includes('3') && (await result.totalUsage).outputTokens > 0 ? 0 : 1);`,
  'OpenAI Agents SDK': `
    import { Agent, run, setOpenAIAPI, setTracingDisabled, tool } from '@openai/agents';
    import { z } from 'zod';
    setOpenAIAPI('chat_completions');
    setTracingDisabled(true);
    const add = tool({
      name: 'add',
      description: 'Adds.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => String(a + b),
    });
    const agent = new Agent({ name: 'Adder', instructions: 'Use the tool.', model: 'policy', tools: [add] });
    const { finalOutput } = await run(agent, 'What is 1 + 2?');
    process.exit(finalOutput.includes('3') ? 0 : 1);`,
};

/** Two sub-agents at the same time, then a summary; the exit code says whether all replies arrived. */
const subAgents = `
  import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
  import { generateText } from 'ai';
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey } = process.env;
  const model = createOpenAICompatible({ name: 'local', baseURL, apiKey })('policy');
  const ask = async (system, prompt) => (await generateText({ model, system, prompt })).text;
  const found = await Promise.all(['left', 'right'].map(side => ask('Look ' + side + '.', 'What is there?')));
  const text = await ask('Summarise.', found.join(' and '));
  process.exit(text.includes('done') ? 0 : 1);`;

let entry: string;
let folder: string;
beforeAll(async () => {
  entry = await buildEntry();
  folder = mkdtempSync(join(tmpdir(), 'ragen agents-'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => {
  rmSync(dirname(entry), { recursive: true });
  rmSync(folder, { recursive: true });
});

/** Plays an agent with Qwen2.5's template; `script` returns the reply to a prompt and the number of the call. */
async function played(agent: string, script: (prompt: string, call: number) => string) {
  writeFileSync(join(folder, 'agent.mjs'), agent);
  const tokenizer = readTokenizer('test/golden/chat/qwen2.5');
  const pool = await EnvironmentProcessPool.start(
    { entry, variables: process.env, stepTimeoutMs: 20_000, onNotice: () => undefined },
    { Agent: 1 },
  );
  try {
    const config = { command: [process.execPath, 'agent.mjs'], folder };
    const source = resolve('envs/program/index.ts');
    const { environments, error } = await pool.load([{ tag: 'Agent', env_type: 'program', source, config }]);
    expect(error).toBeUndefined();
    const turns = new Map<string, number>();
    const rows = new Map<string, number[]>();
    const generator = {
      generate: async (asked: readonly GenerationRow[]): Promise<GeneratedRow[]> =>
        asked.map(({ row, append }) => {
          const call = (turns.get(row) ?? 0) + 1;
          turns.set(row, call);
          const prompt = [...(rows.get(row) ?? []), ...append];
          const text = script(tokenizer.decode(prompt, { special: true }), call);
          const ids = [...tokenizer.encode(text), tokenizer.stopTokenIds[0]];
          rows.set(row, [...prompt, ...ids]);
          return { row, ids, logprobs: ids.map(() => -0.5), finish: 'stop' };
        }),
      release: (released: readonly string[]) => released.forEach(row => rows.delete(row)),
    };
    const options = corridorOptions();
    const train = { env_groups: 1, group_size: 1, env_configs: { tags: ['Agent'], n_groups: [1] } };
    const proxy = new AgentProxy(generator, pool, tokenizer, {
      ...options,
      agent_proxy: { ...options.agent_proxy, max_turn: 6 },
      rollout: { ...options.rollout, max_model_len: 4000, response_length: 200 },
      es_manager: { ...options.es_manager, train },
      custom_envs: { Agent: { max_actions_per_traj: 6 } },
    });
    const { episodes } = await proxy.rollout({ mode: 'train', step: 1, environments, seed: 3 });
    return {
      episode: episodes[0],
      decode: (ids: ArrayLike<number>) => tokenizer.decode(Array.from(ids), { special: true }),
    };
  } finally {
    await pool.stop();
  }
}

describe('the tool loop of the', () => {
  test.each(Object.entries(agents))('%s is one sample', async (_, agent) => {
    const { episode, decode } = await played(agent, (prompt, call) =>
      call === 1
        ? '<tool_call>\n{"name":"add","arguments":{"a":1,"b":2}}\n</tool_call>'
        : `It is ${/<tool_response>\n"?(\d+)/.exec(prompt)?.[1]}.`,
    );
    expect(episode.error).toBeUndefined();
    expect([episode.success, episode.reward, episode.turns.length]).toEqual([true, 1, 2]);
    expect(episode.turns[0].answer).toBe('add({"a":1,"b":2})');
    const [sample, ...others] = episode.samples;
    expect(others).toEqual([]);
    expect(decode(sample.ids)).toContain(
      '<tool_call>\n{"name":"add","arguments":{"a":1,"b":2}}\n</tool_call><|im_end|>',
    );
    expect(decode(sample.ids.filter((_, i) => sample.mask[i] === 1))).toBe(
      '<tool_call>\n{"name":"add","arguments":{"a":1,"b":2}}\n</tool_call><|im_end|>It is 3.<|im_end|>',
    );
  });
});

test('sub-agents at the same time are samples of one episode', async () => {
  const { episode, decode } = await played(subAgents, prompt => {
    if (prompt.includes('Summarise')) return 'done';
    return prompt.includes('Look left') ? 'ice' : 'snow';
  });
  expect([episode.success, episode.turns.length, episode.samples.length]).toEqual([true, 3, 3]);
  const texts = episode.samples.map(({ ids }) => decode(ids));
  expect(texts.filter(text => text.includes('ice<|im_end|>'))).toHaveLength(1);
  expect(texts[2]).toContain('ice and snow');
});

describe('the example agents train ragen-tiny', () => {
  let workspace: Workspace;
  beforeAll(() => {
    workspace = makeWorkspace();
    for (const name of ['config', 'agents'])
      cpSync(join(root, 'examples', name), join(workspace.folder, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(workspace.folder, 'node_modules'));
  });
  afterAll(() => workspace.remove());

  test.each(['ai-sdk.mjs', 'openai-agents.mjs'])('%s', async agent => {
    const { end, episodes, lines } = await trainHere(
      workspace,
      [
        `custom_envs.LakeAgent.env_config.command=[${process.execPath}, ${agent}]`,
        ...groupOverrides('train', [2], 4),
        ...keepAll,
        ...['ppo_mini_batch_size=4', 'micro_batch_size_per_gpu=4', 'workbench.threads=1'],
      ],
      1,
      undefined,
      'lake-agent',
    );
    expect(end).toBe('finished');
    expect(episodes.map(({ error }) => error)).toEqual(Array(8).fill(undefined));
    expect(episodes.every(({ tokens, turns }) => tokens.starts === undefined && turns.length > 0)).toBe(true);
    expect(episodes.every(({ final_state }) => /ended with exit code [01]\./.test(final_state))).toBe(true);
    expect(Number.isFinite(lines[0]['actor/grad_norm'])).toBe(true);
  });
});
