// Unmodified agents from npm as programs: the Vercel AI SDK, the OpenAI Agents SDK and the Anthropic SDK, over all
// protocols. With scripted replies, their tool loops, streams and parallel sub-agents are stitched into the samples that
// they should be. With the bundled model, the agents of examples/agents are trained.
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { keepAll, trainHere } from '../../../support/train-here';
import { groupOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, root, type Workspace } from '../../../support/workspace';
import { ProgramPlayer } from './program-player';

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
  'OpenAI Agents SDK over Responses, streamed': `
    import { Agent, run, setTracingDisabled, tool } from '@openai/agents';
    import { z } from 'zod';
    setTracingDisabled(true);
    const add = tool({
      name: 'add',
      description: 'Adds.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }) => String(a + b),
    });
    const agent = new Agent({ name: 'Adder', instructions: 'Use the tool.', model: 'policy', tools: [add] });
    const result = await run(agent, 'What is 1 + 2?', { stream: true });
    await result.completed;
    process.exit(result.finalOutput.includes('3') ? 0 : 1);`,
  'Anthropic SDK': `
    import Anthropic from '@anthropic-ai/sdk';
    const client = new Anthropic();
    const messages = [{ role: 'user', content: 'What is 1 + 2?' }];
    const input_schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } };
    const tools = [{ name: 'add', description: 'Adds.', input_schema }];
    let text = '';
    for (let turn = 0; turn < 4 && text === ''; turn++) {
      const reply = await client.messages.stream({ model: 'policy', max_tokens: 100, messages, tools }).finalMessage();
      messages.push({ role: 'assistant', content: reply.content });
      const calls = reply.content.filter(({ type }) => type === 'tool_use');
      if (calls.length === 0) text = reply.content[0].text;
      const result = ({ id, input: { a, b } }) => ({ type: 'tool_result', tool_use_id: id, content: String(a + b) });
      if (calls.length > 0) messages.push({ role: 'user', content: calls.map(result) });
    }
    process.exit(text.includes('3') ? 0 : 1);`,
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

let player: ProgramPlayer;
beforeAll(async () => {
  player = await ProgramPlayer.open();
  symlinkSync(join(root, 'node_modules'), join(player.folder, 'node_modules'));
});
afterAll(() => player.close());

/** Plays an agent that is written in JavaScript. */
function played(agent: string, script: (prompt: string, call: number) => string) {
  writeFileSync(join(player.folder, 'agent.mjs'), agent);
  return player.play([process.execPath, 'agent.mjs'], script);
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

  test.each([
    ['ai-sdk.mjs', 'lake-agent'],
    ['openai-agents.mjs', 'lake-openai-agent'],
  ])('%s with the configuration %s', async (agent, configuration) => {
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
      configuration,
    );
    expect(end).toBe('finished');
    expect(episodes.map(({ error }) => error)).toEqual(Array(8).fill(undefined));
    expect(episodes.every(({ tokens, turns }) => tokens.starts === undefined && turns.length > 0)).toBe(true);
    expect(episodes.every(({ final_state }) => /ended with exit code [01]\./.test(final_state))).toBe(true);
    expect(Number.isFinite(lines[0]['actor/grad_norm'])).toBe(true);
  });
});
