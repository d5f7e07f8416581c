// Unmodified agents of smolagents, from PyPI, as programs. With scripted replies, the loop of a tool and of code runs as
// with any service. With ragen-small, an agent is trained: its calls are recorded with their exact tokens and stitched
// into samples, and the reward depends on its answer.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { keepAll, trainHere, type Trained } from '../support/train-here';
import { groupOverrides } from '../support/tiny-overrides';
import { makeWorkspace, type Workspace } from '../support/workspace';
import { ProgramPlayer } from '../unit/envs/program/program-player';
import { installed, program } from './library';

vi.mock('../../extension/node/installation', async () =>
  (await import('../support/test-installation')).testInstallation(),
);

describe.skipIf(!installed)('scripted replies', () => {
  let player: ProgramPlayer;
  beforeAll(async () => {
    player = await ProgramPlayer.open();
  });
  afterAll(() => player.close());

  const played = (agent: string, replies: readonly string[]) => {
    writeFileSync(join(player.folder, 'agent.py'), agent);
    return player.play([program('python'), 'agent.py'], (_, call) => replies[call - 1]);
  };

  test('a ToolCallingAgent calls its tool, and answers with its result', async () => {
    const { episode, decode } = await played(
      `
import sys
from smolagents import OpenAIModel, ToolCallingAgent, tool

@tool
def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: a number
        b: another number
    """
    return a + b

agent = ToolCallingAgent(tools=[add], model=OpenAIModel("policy"), max_steps=3, verbosity_level=0)
sys.exit(0 if agent.run("What is 1 + 2?") == 3 else 1)
`,
      [
        '<tool_call>\n{"name":"add","arguments":{"a":1,"b":2}}\n</tool_call>',
        '<tool_call>\n{"name":"final_answer","arguments":{"answer":3}}\n</tool_call>',
      ],
    );
    expect([episode.error, episode.success, episode.turns.length]).toEqual([undefined, true, 2]);
    expect(episode.turns.map(({ answer }) => answer)).toEqual(['add({"a":1,"b":2})', 'final_answer({"answer":3})']);
    // smolagents repeats the call as a text in its history, so the second call begins a sample of its own.
    expect(episode.samples).toHaveLength(2);
    expect(decode(episode.samples[1].ids)).toContain('Observation:\n3');
  });

  test('a CodeAgent runs its code', async () => {
    const { episode } = await played(
      `
import sys
from smolagents import CodeAgent, OpenAIModel

agent = CodeAgent(tools=[], model=OpenAIModel("policy"), max_steps=3, verbosity_level=0)
sys.exit(0 if agent.run("What is 1 + 2?") == 3 else 1)
`,
      ['Thought: I compute.\n<code>\nx = 1 + 2\nprint(x)\n</code>', 'Thought: x.\n<code>\nfinal_answer(x)\n</code>'],
    );
    expect([episode.error, episode.success, episode.turns.length]).toEqual([undefined, true, 2]);
    expect(episode.samples).toHaveLength(2);
    expect(episode.turns[1].state).toContain('Execution logs:\n3');
  });
});

/** Asks in three calls: two that may use the tool, and one for the answer; the reward is higher for shorter answers. */
const guess = `
import json, os
from smolagents import OpenAIModel, ToolCallingAgent, tool

@tool
def look(direction: str) -> str:
    """Says what is next to you.

    Args:
        direction: Left, Down, Right or Up
    """
    return "ice"

agent = ToolCallingAgent(tools=[look], model=OpenAIModel("policy"), max_steps=2, verbosity_level=0)
answer = str(agent.run("Which way do you go?"))
with open(os.environ["RAGEN_REWARD_FILE"], "w") as file:
    json.dump({"reward": 1 / (1 + len(answer.strip()))}, file)
`;

describe.skipIf(!installed)('ragen-small plays a ToolCallingAgent', () => {
  let workspace: Workspace;
  let trained: Trained;
  beforeAll(async () => {
    workspace = makeWorkspace();
    workspace.write('agent/guess.py', guess);
    trained = await trainHere(
      workspace,
      [
        'model_path=ragen-small',
        'custom_envs.Words.env_type=program',
        `custom_envs.Words.env_config={command: [${program('python')}, guess.py], folder: agent, reward: file, at_once: 2}`,
        'agent_proxy.max_turn=4',
        'actor_rollout_ref.rollout.max_model_len=4000',
        'actor_rollout_ref.rollout.response_length=24',
        ...groupOverrides('train', [1], 4),
        ...keepAll,
      ],
      1,
    );
  });
  afterAll(() => workspace.remove());

  test('its answers are rewarded, and the step trains', () => {
    expect(trained.end).toBe('finished');
    expect(trained.episodes.map(({ error, turns }) => [error, turns.length])).toEqual(Array(4).fill([undefined, 3]));
    for (const { reward, turns } of trained.episodes) {
      const answer = (turns[2].answer ?? turns[2].raw).trim();
      expect(reward).toBe(1 / (1 + [...answer].length)); // Python counts code points
    }
    expect(new Set(trained.episodes.map(({ reward }) => reward)).size).toBeGreaterThan(1);
    expect(trained.lines[0]['actor/grad_norm']).toBeGreaterThan(0);
  });

  test('its calls have their exact tokens: those of its steps are one sample, and that for the answer another', () => {
    for (const { tokens, turns } of trained.episodes) {
      const spans = turns.map(({ span }) => span);
      expect(tokens.starts).toEqual([0, spans[1][1]]);
      const sampled = spans.flatMap(([from, to]) => Array.from({ length: to - from }, (_, i) => from + i));
      expect(sampled.length).toBeGreaterThan(6);
      expect([...tokens.ids.keys()].filter(at => tokens.mask[at] === 1)).toEqual(sampled);
      expect([...tokens.ids.keys()].filter(at => tokens.logprobs[at] !== null)).toEqual(sampled);
      expect(turns[1].state).toMatch(/^user: Error:\nError while parsing tool call from model output/);
    }
  });
});
