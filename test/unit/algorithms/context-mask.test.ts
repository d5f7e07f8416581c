// Context masks: which tokens of earlier responses remain, and that an episode's samples are what the model saw.
import { describe, expect, it } from 'vitest';
import { contextMask, shownIds, type PastResponse } from '../../../extension/algorithms/context-mask';
import { thoughtRange } from '../../../extension/trainer/rollout/answer-ranges';
import {
  asked,
  characterTokenizer,
  encodeText,
  openContext,
  past,
  showIds,
  turnEnd,
} from '../trainer/rollout/scripted-rollout';

const decode = (ids: readonly number[]) => characterTokenizer.decode(ids);
const text = (thought: string) => `${thought}</think><answer>Up</answer>`;
const response = (thought: string, logprob: number): PastResponse => {
  const ids = [...encodeText(text(thought)), turnEnd];
  return { ids, logprobs: ids.map(() => logprob), thought: thoughtRange(ids, '<think>', decode) };
};
const shown = (name: 'past_thoughts' | 'unsure_thoughts', responses: PastResponse[]) =>
  shownIds(contextMask(name)!, responses).map(ids => showIds(ids));

describe('the range of a thought', () => {
  it.each([
    ['abc</think>d', '<think>', 'abc'],
    ['x<think>abc</think>d', '', 'abc'],
    ['</think>d', '<think>', ''],
    ['never closed', '<think>', ''],
    ['no tags', '', ''],
  ])('of %j after %j is %j', (sampled, prefix, thought) => {
    const ids = encodeText(sampled);
    expect(decode(ids.slice(...thoughtRange(ids, prefix, decode)))).toBe(thought);
  });

  it('leaves out ids that encode a part of a tag', () => {
    const pieces = ['a', 'bc<', '/think', '>d'];
    const byPiece = (ids: readonly number[]) => ids.map(id => pieces[id]).join('');
    expect(thoughtRange([0, 1, 2, 3], '<think>', byPiece)).toEqual([0, 1]);
  });
});

describe('masks', () => {
  it('past_thoughts leaves out the thoughts of all earlier responses', () => {
    expect(shown('past_thoughts', [response('one', -1), response('two', -2)])).toEqual([
      '</think><answer>Up</answer><|im_end|>',
      '</think><answer>Up</answer><|im_end|>',
    ]);
  });

  it('unsure_thoughts keeps the thought with the highest mean probability', () => {
    expect(shown('unsure_thoughts', [response('one', -1), response('two', -0.5), response('three', -2)])).toEqual([
      '</think><answer>Up</answer><|im_end|>',
      'two</think><answer>Up</answer><|im_end|>',
      '</think><answer>Up</answer><|im_end|>',
    ]);
  });

  it('none has no mask', () => {
    expect(contextMask('none')).toBeNull();
  });
});

describe('an episode with a context mask', () => {
  const play = (context_mask: 'none' | 'past_thoughts') => {
    const context = openContext({ context_mask });
    const history: ReturnType<typeof past>[] = [];
    for (const [i, thought] of ['one', 'two', 'three'].entries()) {
      context.prompt(asked(i + 1), history);
      const ids = [...encodeText(text(thought)), turnEnd];
      history.push(past(i + 1, context.accept({ ids, logprobs: ids.map(() => -1) })));
    }
    return context.samples();
  };

  it('has a sample for each turn, without the earlier thoughts and with its own', () => {
    const samples = play('past_thoughts');
    expect(samples).toHaveLength(3);
    const last = showIds(samples[2].ids);
    expect(last).toContain('<think></think><answer>Up</answer>');
    expect(last).not.toMatch(/one|two/);
    expect(last).toContain('<think>three</think>');
    expect(showIds(samples[2].ids.filter((_, at) => samples[2].mask[at]))).toBe(`${text('three')}<|im_end|>`);
    expect(samples.map(({ turns }) => turns.map(({ turn }) => turn))).toEqual([[1], [2], [3]]);
  });

  it('differs from an episode without one by nothing but the earlier thoughts', () => {
    const [whole] = play('none');
    const [, , last] = play('past_thoughts');
    expect(showIds(last.ids)).toBe(showIds(whole.ids).replace('one', '').replace('two', ''));
  });
});
