// Filters of degenerate responses: what they count, and when they keep an episode out of the update.
import { expect, it } from 'vitest';
import { filterResponses } from '../../../../extension/trainer/loop/response-filters';

/** An episode of one sample whose turns have these log-probs; a prompt token precedes each turn. */
const episode = (...turns: number[][]) => {
  const ids: number[] = [];
  const logprobs: number[] = [];
  const spans = turns.map((own, i) => {
    ids.push(9, ...own.map(() => 9));
    logprobs.push(0, ...own);
    return { turn: i + 1, span: [ids.length - own.length, ids.length] as [number, number] };
  });
  const mask = new Uint8Array(ids.length);
  return { samples: [{ ids: Int32Array.from(ids), mask, logprobs: Float32Array.from(logprobs), turns: spans }] };
};
const loop = { window: 4, prob_threshold: 0.9, enforce: false };
const odd = { token_id_threshold: 5, logprob_offset: 1, enforce: true };

it('counts, and keeps everything, unless a filter is enforced', () => {
  const episodes = [episode([-1, -1], [0, 0, 0, 0]), episode([-1, -20]), episode([-1])];
  const filters = { gibberish: null, repetition: loop };
  expect(filterResponses(episodes, { response_filters: filters }, 100)).toEqual({
    kept: [true, true, true],
    metrics: { 'rollout/repetition_rate': 1 / 3 },
  });
  expect(filterResponses(episodes, { response_filters: { gibberish: odd, repetition: loop } }, 100)).toEqual({
    kept: [true, false, true],
    metrics: { 'rollout/gibberish_rate': 1 / 3, 'rollout/repetition_rate': 1 / 3 },
  });
});

it('does not join the tokens of two turns, whose log-probs a prompt of probability 1 separates', () => {
  const filters = { gibberish: null, repetition: { ...loop, enforce: true } };
  expect(filterResponses([episode([0, 0], [0, 0, 0])], { response_filters: filters }, 100).kept).toEqual([true]);
});

it('has no metrics without filters or episodes of them', () => {
  expect(filterResponses([episode([0])], { response_filters: null }, 100)).toEqual({ kept: [true], metrics: {} });
  const filters = { gibberish: odd, repetition: null };
  expect(filterResponses([], { response_filters: filters }, 100).metrics).toEqual({ 'rollout/gibberish_rate': 0 });
});
