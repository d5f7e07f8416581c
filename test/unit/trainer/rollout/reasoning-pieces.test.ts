// The pairs of prompt and reasoning for the collapse metrics, extracted from episodes in each context mode.
import { describe, expect, it } from 'vitest';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { reasoningPieces } from '../../../../extension/trainer/rollout/reasoning-pieces';
import { partial } from '../../../support/partial';
import type { PlayedTurn } from '../../../../extension/trainer/rollout/rollout-batch';
import type { RolloutSample } from '../../../../extension/trainer/rollout/rollout-sample';
import {
  characterTokenizer,
  corridor,
  corridorOptions,
  CorridorPool,
  encodeText,
  ScriptedGenerator,
  showIds,
} from './scripted-rollout';

async function pieces(answers: string[], changes: Partial<ReturnType<typeof corridorOptions>['agent_proxy']> = {}) {
  const options = corridorOptions();
  const generator = new ScriptedGenerator((_, turn) => answers[turn - 1]);
  const agent_proxy = { ...options.agent_proxy, ...changes };
  const agent = new AgentProxy(generator, new CorridorPool(), characterTokenizer, { ...options, agent_proxy });
  const { episodes } = await agent.rollout({ mode: 'train', step: 1, environments: [corridor] });
  return { ...reasoningPieces(episodes[0], encodeText), asked: generator.calls.map(({ rows }) => rows[0].append) };
}
const well = (thought: string) => `${thought}</think><answer>Up</answer>`;

describe('reasoning pieces', () => {
  it('are each turn’s context and thought, without tags and surrounding spaces', async () => {
    const { first, turns, turnCount, turnTotal, asked } = await pieces([well(' one\n'), well('two'), well('three')]);
    expect(turns.map(({ turn, reasoning }) => [turn, showIds(reasoning)])).toEqual([
      [1, 'one'],
      [2, 'two'],
      [3, 'three'],
    ]);
    expect(first).toBe(turns[0]);
    expect(first!.prompt).toEqual(asked[0]);
    expect(showIds(turns[2].prompt)).toMatch(/^<\|im_start\|>system\n[^]*two[^]*Turn 3:[^]*assistant\n<think>$/);
    expect([turnCount, turnTotal]).toEqual([3, 3]);
  });

  it('exclude turns with an unclosed or blank thought, and count these turns', async () => {
    const { first, turns, turnCount, turnTotal } = await pieces(['no end', well('  '), well('third')]);
    expect(first).toBeNull();
    expect(turns.map(({ turn }) => turn)).toEqual([3]);
    expect([turnCount, turnTotal]).toEqual([1, 3]);
  });

  it('include the thought of a malformed answer, without markers inside the thought', async () => {
    const { first } = await pieces(['a<think>b</think> no answer', well('x'), well('y')]);
    expect(showIds(first!.reasoning)).toBe('ab');
  });

  it('contain the windowed prompts that were shown', async () => {
    const answers = [well('one'), well('two'), well('three')];
    const { turns, asked } = await pieces(answers, { context_window_mode: 'single_turn', max_context_window: 2 });
    expect(turns.map(({ prompt }) => prompt)).toEqual(asked);
  });

  it('find the first turn also in the sample of a role that is declared second', () => {
    const turn = (raw: string) => partial<PlayedTurn>({ raw: `<think>${raw}` });
    const sample = (number: number) =>
      partial<RolloutSample>({ ids: Int32Array.of(number, 9), turns: [{ turn: number, span: [1, 2] }] });
    const episode = { turns: [turn(well('one')), turn(well('two'))], samples: [sample(2), sample(1)] };
    const { first } = reasoningPieces(episode, encodeText);
    expect([first?.turn, showIds(first!.reasoning), first!.prompt]).toEqual([1, 'one', [1]]);
  });

  it('are empty without thinking', async () => {
    const { first, turns, turnCount, turnTotal } = await pieces(['Up</answer>', 'Up</answer>', 'Up</answer>'], {
      enable_think: false,
    });
    expect([first, turns, turnCount, turnTotal]).toEqual([null, [], 0, 3]);
  });
});
