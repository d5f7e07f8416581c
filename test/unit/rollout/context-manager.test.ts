// The context as token ids: what is masked, how segments join, and when it is full.
import { describe, expect, it } from 'vitest';
import { FullContext } from '../../../extension/trainer/rollout/context-manager';
import { characterTokenizer, encodeText, showIds, turnEnd, turnStart } from './scripted-rollout';

const open = (max_model_len = 1000, response_length = 10) =>
  new FullContext(characterTokenizer, { prefix: '<think>', max_model_len, response_length }, 'S');
const answer = (text: string) => {
  const ids = [...encodeText(text), turnEnd];
  return { ids, logprobs: ids.map((_, index) => -index - 1), finish: 'stop' as const };
};

describe('full context', () => {
  it('is what the template would render of the whole chat', () => {
    const context = open();
    context.prompt('u1');
    expect(context.accept(answer('a1'))).toBe('<think>a1');
    context.prompt('u2');
    expect([...context.ids]).toEqual(characterTokenizer.encodePrompt(context.messages, '<think>'));
    expect(context.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
  });

  it('gives for each generation only what is new', () => {
    const context = open();
    const first = context.prompt('u1') ?? [];
    context.accept(answer('a1'));
    const second = context.prompt('u2') ?? [];
    expect(showIds(second)).toBe('\n<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n<think>');
    expect([...context.ids]).toEqual([...first, ...answer('a1').ids, ...second]);
  });

  it('masks exactly the sampled tokens, the stop token included, and keeps their log-probs', () => {
    const context = open();
    context.prompt('u1');
    context.accept(answer('a'));
    context.prompt('u2');
    context.accept(answer('bc'));
    const sampled = context.ids.filter((_, token) => context.mask[token]);
    expect(showIds(sampled)).toBe('a<|im_end|>bc<|im_end|>');
    expect(context.logprobs.filter((_, token) => context.mask[token])).toEqual([-1, -2, -1, -2, -3]);
    expect(context.logprobs.every((logprob, token) => context.mask[token] || logprob === 0)).toBe(true);
    expect(context.spans.map(([from, to]) => showIds(context.ids.slice(from, to)))).toEqual([
      'a<|im_end|>',
      'bc<|im_end|>',
    ]);
  });

  it('closes a turn that was cut off, with a token that is not trained on', () => {
    const context = open();
    context.prompt('u1');
    context.accept({ ids: encodeText('cut'), logprobs: [-1, -1, -1], finish: 'length' });
    const next = context.prompt('u2') ?? [];
    expect(next.slice(0, 3)).toEqual([turnEnd, ...encodeText('\n'), turnStart]);
    expect([...context.ids]).toEqual(
      characterTokenizer.encodePrompt(
        context.messages.with(2, { role: 'assistant', content: '<think>cut' }),
        '<think>',
      ),
    );
    expect(context.mask[context.spans[0][1]]).toBe(0);
  });

  it('keeps sampled ids that its tokenizer would never produce from their text', () => {
    const context = open();
    context.prompt('u1');
    const odd = [...encodeText('a'), 3, ...encodeText('b'), turnEnd]; // id 3 decodes to nothing
    context.accept({ ids: odd, logprobs: odd.map(() => -1), finish: 'stop' });
    context.prompt('u2');
    const [from, to] = context.spans[0];
    expect(context.ids.slice(from, to)).toEqual(odd);
    expect(context.messages[2].content).toBe('<think>ab');
  });

  it('is full, unchanged, when the next prompt leaves no room for an answer', () => {
    const length = characterTokenizer.encodePrompt(
      [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'u1' },
      ],
      '<think>',
    ).length;
    expect(open(length + 9, 10).prompt('u1')).toBeNull();
    const context = open(length + 10, 10);
    expect(context.prompt('u1')).toHaveLength(length);
    context.accept(answer('a'));
    expect(context.prompt('u2')).toBeNull();
    expect(context.ids).toHaveLength(length + 2);
    expect(context.messages).toHaveLength(3);
  });
});
