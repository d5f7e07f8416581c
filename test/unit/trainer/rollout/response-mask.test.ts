// Masks compared with RAGEN's alignment, computed by hand on small id sequences. RAGEN's mask refers to the previous
// token, so RAGEN's position p is token p + 1 here. Id 1 begins a message, id 2 ends a message.
import { describe, expect, it } from 'vitest';
import { placeRewards } from '../../../../extension/algorithms/token-sequences';
import { maskRule, ragenMask } from '../../../../extension/trainer/rollout/response-mask';
import { sampledMask } from '../../../../extension/trainer/rollout/rollout-sample';
import { openContext, asked, encodeText, past, showIds, turnEnd } from './scripted-rollout';

const marker = 1;
// Token ids at indices 0…16; RAGEN's example has two padding tokens before them.
const ids = Int32Array.from([1, 30, 2, 1, 40, 2, 1, 50, 60, 2, 1, 41, 2, 1, 50, 61, 2]);
const [first, last] = [
  { turn: 1, span: [8, 10] as [number, number] },
  { turn: 2, span: [15, 17] as [number, number] },
];
const whole = { ids, turns: [first, last] };
const ones = (mask: Uint8Array) => [...mask.keys()].filter(t => mask[t]);
const rule = (changes: Partial<Parameters<typeof maskRule>[0]>) =>
  maskRule({ mode: 'full', enable_response_mask: true, ragen: false, ...changes }, marker);

describe('RAGEN’s masks', () => {
  it('cover an answer with its header, its end and the next message’s marker', () => {
    // RAGEN's positions 8, 9, 10, 11, 15, 16, 17 of the padded ids
    expect(ones(ragenMask(whole, marker, 'full'))).toEqual([7, 8, 9, 10, 14, 15, 16]);
  });

  it('cover a windowed context from the answer’s own marker on', () => {
    // RAGEN's positions 14 … 17 of the padded ids
    for (const mode of ['limited_multi_turn', 'single_turn'] as const)
      expect(ones(ragenMask({ ids, turns: [last] }, marker, mode))).toEqual([13, 14, 15, 16]);
  });

  it('cover everything after the system message without enable_response_mask', () => {
    // RAGEN's positions 5 … 17 of the padded ids
    const everything = Array.from({ length: 13 }, (_, i) => i + 4);
    for (const ragen of [true, false])
      expect(ones(rule({ enable_response_mask: false, ragen }).mask(whole))).toEqual(everything);
  });

  it('leave a windowed context unchanged without enable_response_mask', () => {
    const windowed = { ids, turns: [last] };
    const options = { mode: 'single_turn', enable_response_mask: false } as const;
    expect(ones(rule({ ...options, ragen: true }).mask(windowed))).toEqual([13, 14, 15, 16]);
    expect(rule(options).mask(windowed)).toEqual(sampledMask(windowed));
  });
});

describe('the default masks', () => {
  it('cover the sampled tokens', () => {
    expect(ones(rule({}).mask(whole))).toEqual([8, 9, 15, 16]);
  });

  it('end a turn where RAGEN places its score', () => {
    // index 17 of the shifted, padded ids in RAGEN without turn scores, indices 10 and 17 with turn scores
    const ends = whole.turns.map(({ span: [, to] }) => to - 1);
    expect([...placeRewards(ids.length, ends, [1, 2])].flatMap((reward, t) => (reward ? [[t, reward]] : []))).toEqual([
      [9, 1],
      [16, 2],
    ]);
  });

  it('train no token twice after a chat was shortened, and no token of the context from which it continued', () => {
    const context = openContext({ max_model_len: 600, enable_response_mask: false });
    const history = [];
    for (let turn = 1; turn <= 3; turn++) {
      context.prompt(asked(turn), history);
      const sampled = [...encodeText(`${turn}</think><answer>Up</answer>`), turnEnd];
      history.push(past(turn, context.accept({ ids: sampled, logprobs: sampled.map(() => -1) })));
    }
    const samples = context.samples();
    expect(samples.length).toBeGreaterThan(1);
    const trained = samples.map(({ ids, mask }) => showIds(ids.filter((_, t) => mask[t])));
    for (let turn = 1; turn <= 3; turn++) expect(trained.join('').split(`Turn ${turn}:`)).toHaveLength(2);
  });
});

describe("samples in RAGEN's form", () => {
  it('include the text that the template adds after the last answer', () => {
    const context = openContext({ ragen: true });
    context.prompt(asked(1), []);
    context.accept({ ids: encodeText('cut'), logprobs: [-1, -1, -1] });
    const [{ ids, mask, logprobs }] = context.samples();
    expect(showIds(ids.filter((_, t) => mask[t]))).toBe('assistant\n<think>cut<|im_end|>\n');
    expect([mask.length, logprobs.length]).toEqual([ids.length, ids.length]);
    expect([...logprobs.filter(logprob => logprob !== 0)]).toEqual([-1, -1, -1]);
  });
});
