// What the rollouts of a step tell without a model, with values by hand.
import { expect, it } from 'vitest';
import type { ChatMessage, ForeignEpisode } from '../../../extension/foreign-runs/adapter';
import { episodeRecord } from '../../../extension/foreign-runs/episode-record';
import { RolloutDiagnosis } from '../../../extension/foreign-runs/rollout-diagnosis';

const asks = 'Think in <think></think> and answer in <answer></answer>.';

function diagnosed(rollouts: readonly { group: number; rollout: ForeignEpisode }[]) {
  const diagnosis = new RolloutDiagnosis();
  rollouts.forEach(({ group, rollout }, i) =>
    diagnosis.add(
      episodeRecord(rollout, { mode: 'train', step: 1, group_id: group, member: i, env_id: i }),
      rollout.hasTexts ?? true,
    ),
  );
  return diagnosis.result();
}

function rollout(group: number, reward: number, answers: readonly string[], more: Partial<ForeignEpisode> = {}) {
  const messages = answers.flatMap((content): ChatMessage[] => [
    { role: 'user', content: asks },
    { role: 'assistant', content },
  ]);
  return { group, rollout: { group: String(group), tag: 'lake', messages, reward, success: null, ...more } };
}
const thinking = (thought: string): string => `<think>${thought}</think><answer>Up</answer>`;

it('computes rewards in groups, thoughts, format and length', () => {
  const { metrics, asksForThoughts } = diagnosed([
    rollout(0, 1, [thinking('go up'), thinking('go up')]),
    rollout(0, 0, [thinking('Go  up'), 'no tags at all']),
    rollout(1, 1, [thinking('stay')]),
    rollout(1, 1, ['<answer>Up</answer>']),
    rollout(2, 5, ['']), // a group of one has no deviation
    rollout(3, 9, [thinking('x')], { error: 'the environment failed' }),
  ]);
  expect(asksForThoughts).toBe(true);
  expect(metrics).toMatchObject({
    'critic/score/mean': 8 / 5,
    'rollout/in_group_reward_std': Number((Math.SQRT1_2 / 2).toPrecision(9)), // √½ and 0
    'rollout/in_group_reward_max': 1,
    'rollout/in_group_reward_mean': 0.75,
    'rollout/in_group_reward_sum': 1.5,
    'rollout/zero_variance_ratio': 0.5,
    'thoughts/most_frequent': 0.75, // go up, three of four
    'thoughts/distinct_1': Number((3 / 7).toPrecision(9)),
    'thoughts/distinct_2': Number((1 / 3).toPrecision(9)),
    'thoughts/rate': Number((4 / 7).toPrecision(9)),
    'rollout/invalid_answer_rate': Number((2 / 7).toPrecision(9)), // without tags, and the empty response
  });
  const lengths = [2 * thinking('go up').length, thinking('Go  up').length + 14, thinking('stay').length, 19, 0];
  expect(metrics['response_length/characters']).toBe(lengths.reduce((sum, x) => sum + x) / 5);
  expect(metrics).not.toHaveProperty(['response_length/mean']);
});

it('counts tokens if all rollouts have them', () => {
  const said = (sampled: number): ChatMessage[] => [
    { role: 'user', content: 'x', tokens: { ids: [1, 2], mask: [false, false], logprobs: [] } },
    {
      role: 'assistant',
      content: 'y',
      tokens: {
        ids: new Array<number>(sampled).fill(3),
        mask: new Array<boolean>(sampled).fill(true),
        logprobs: new Array<number>(sampled).fill(-1),
      },
    },
  ];
  const { metrics } = diagnosed([rollout(0, 1, [], { messages: said(3) }), rollout(0, 1, [], { messages: said(6) })]);
  expect(metrics).toMatchObject({
    'response_length/mean': 4.5,
    'response_length/max': 6,
    'response_length/min': 3,
    'rollout/zero_variance_ratio': 1,
    'rollout/invalid_answer_rate': 0, // no prompt asks for tags
    'thoughts/rate': 0,
  });
  expect(metrics).not.toHaveProperty(['response_length/characters']);
});

it('accepts calls of tools where a prompt asks for an answer, but not a thought alone', () => {
  const { metrics } = diagnosed([
    rollout(0, 1, ['<think>look</think><search>lakes</search>', '<think>so</think> up', '<think>open <answer>Up']),
  ]);
  expect(metrics['rollout/invalid_answer_rate']).toBe(Number((2 / 3).toPrecision(9)));
});

it('leaves out what is not finite', () => {
  const { metrics } = diagnosed([rollout(0, 1e308, ['x']), rollout(0, -1e308, ['x'])]);
  expect(Object.values(metrics).filter(value => !Number.isFinite(value))).toEqual([]);
  expect(metrics).not.toHaveProperty(['rollout/in_group_reward_std']);
});

it('tells nothing about texts that the trainer did not store', () => {
  const { metrics } = diagnosed([
    rollout(0, 1, ['[3 tokens]'], { hasTexts: false }),
    rollout(0, 0, ['[3 tokens]'], { hasTexts: false }),
  ]);
  expect(Object.keys(metrics).filter(name => !/^(rollout\/in_group|rollout\/zero|critic)/.test(name))).toEqual([]);
  expect(metrics['rollout/zero_variance_ratio']).toBe(0);
  expect(diagnosed([]).metrics).toEqual({});
});
