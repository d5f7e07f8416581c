// The context as token ids: the mask, the joins of segments, the starts of samples and rows, and the maximum length.
import { describe, expect, it } from 'vitest';
import type { CurrentTurn } from '../../../../extension/trainer/rollout/context-window';
import {
  asked,
  characterTokenizer,
  encodeText,
  openContext,
  past,
  showIds,
  turnEnd,
  turnStart,
} from './scripted-rollout';

const answer = (text: string) => {
  const ids = [...encodeText(text), turnEnd];
  return { ids, logprobs: ids.map((_, index) => -index - 1), finish: 'stop' as const };
};

/** Plays turns with these answers. Returns the new tokens that the engine receives in each turn. */
function play(context: ReturnType<typeof openContext>, answers: string[]) {
  const history: CurrentTurn['history'][number][] = [];
  return answers.map((text, index) => {
    const prompt = context.prompt(asked(index + 1), history);
    if (prompt) history.push(past(index + 1, context.accept(answer(text))));
    return prompt;
  });
}

const good = (text: string) => `${text}</think><answer>Up</answer>`;

describe('the whole chat', () => {
  it("equals the template's rendering", () => {
    const context = openContext();
    play(context, [good('a')]);
    context.prompt(asked(2), [past(1, '<think>a</think><answer>Up</answer>')]);
    context.accept(answer('b'));
    const [{ ids }] = context.samples();
    expect([...ids.slice(0, context.samples()[0].turns[1].span[0])]).toEqual(
      characterTokenizer.encodePrompt(context.messages.slice(0, -1), '<think>'),
    );
    expect(context.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant']);
  });

  it('returns only the new tokens for each generation', () => {
    const context = openContext();
    const [first, second] = play(context, [good('a'), good('b')]);
    expect([first?.fresh, second?.fresh]).toEqual([true, false]);
    expect(showIds(second!.append)).toMatch(/^\n<\|im_start\|>user\nReward:\n-0\.1\n\nTurn 2:\nState:\ns2\n/);
    expect([...context.samples()[0].ids]).toEqual([
      ...first!.append,
      ...answer(good('a')).ids,
      ...second!.append,
      ...answer(good('b')).ids,
    ]);
  });

  it('masks exactly the sampled tokens, including the stop token, and keeps their log-probs', () => {
    const context = openContext();
    play(context, ['a', 'bc']);
    const [{ ids, mask, logprobs, turns }] = context.samples();
    expect(showIds(ids.filter((_, token) => mask[token]))).toBe('a<|im_end|>bc<|im_end|>');
    expect([...logprobs.filter((_, token) => mask[token])]).toEqual([-1, -2, -1, -2, -3]);
    expect(logprobs.every((logprob, token) => mask[token] || logprob === 0)).toBe(true);
    expect(turns.map(({ turn, span }) => [turn, showIds(ids.slice(...span))])).toEqual([
      [1, 'a<|im_end|>'],
      [2, 'bc<|im_end|>'],
    ]);
  });

  it('closes a truncated turn with a token that is not trained on', () => {
    const context = openContext();
    context.prompt(asked(1), []);
    context.accept({ ids: encodeText('cut'), logprobs: [-1, -1, -1] });
    const next = context.prompt(asked(2), [past(1, '<think>cut')])!;
    expect(next.append.slice(0, 3)).toEqual([turnEnd, ...encodeText('\n'), turnStart]);
    context.accept(answer('b'));
    const [{ mask, turns }] = context.samples();
    expect(mask[turns[0].span[1]]).toBe(0);
  });

  it('keeps sampled ids that its tokenizer would not produce from their text', () => {
    const context = openContext();
    context.prompt(asked(1), []);
    const odd = [...encodeText('a'), 3, ...encodeText('b'), turnEnd]; // id 3 decodes to an empty text
    context.accept({ ids: odd, logprobs: odd.map(() => -1) });
    context.prompt(asked(2), [past(1, '<think>ab')]);
    const [{ ids, turns }] = context.samples();
    expect([...ids.slice(...turns[0].span)]).toEqual(odd);
    expect(context.messages[2].content).toBe('<think>ab');
  });
});

describe('room', () => {
  const promptLength = openContext().prompt(asked(1), [])!.append.length;

  it('must suffice for the prompt and an answer; otherwise the context does not change', () => {
    expect(openContext({ max_model_len: promptLength + 9 }).prompt(asked(1), [])).toBeNull();
    const context = openContext({ max_model_len: promptLength + 10 });
    expect(context.prompt(asked(1), [])!.append).toHaveLength(promptLength);
    context.accept(answer('a'));
    expect(context.prompt(asked(2, 'a state that is longer than the first'), [past(1, 'a')])).toBeNull();
    expect(context.messages).toHaveLength(3);
    expect(context.samples()).toHaveLength(1);
    expect(context.shortened).toBe(false);
  });

  it('is made by dropping the oldest turns but not the states after them; a new sample begins at that point', () => {
    const context = openContext({ max_model_len: 2 * promptLength + 60 });
    const prompts = play(context, [good('a'), good('b'), good('c')]);
    expect(prompts.map(prompt => prompt?.fresh)).toEqual([true, false, true]);
    expect(context.shortened).toBe(true);
    const [first, second] = context.samples();
    expect([first.turns.map(({ turn }) => turn), second.turns.map(({ turn }) => turn)]).toEqual([[1, 2], [3]]);
    const shown = showIds(prompts[2]!.append);
    expect(shown).toMatch(/^<\|im_start\|>system\nS<\|im_end\|>\n<\|im_start\|>user\n\nTurn 2:\nState:\ns2\n/);
    expect(shown.match(/Turn \d/g)).toEqual(['Turn 2', 'Turn 3']);
    expect(showIds(second.ids.filter((_, token) => second.mask[token]))).toBe(`${good('c')}<|im_end|>`);
    expect([...second.logprobs.slice(0, second.turns[0].span[0])].every(logprob => logprob === 0)).toBe(true);
  });

  it('is made as in RAGEN if configured: the state after a dropped turn is dropped too', () => {
    const context = openContext({ max_model_len: 3 * promptLength + 90, ragen: true });
    const prompts = play(context, [good('a'), good('b'), good('c'), good('d')]);
    const shown = showIds(prompts[3]!.append);
    expect(shown).toMatch(/^<\|im_start\|>system\nS<\|im_end\|>\n<\|im_start\|>assistant\n<think>b<\/think>/);
    expect(shown.match(/Turn \d/g)).toEqual(['Turn 3', 'Turn 4']);
  });
});

describe('the last turns as a chat', () => {
  const window = { context_window_mode: 'limited_multi_turn', max_context_window: 2 } as const;

  it('begins with the oldest turn of the window, with its number in the episode and without the reward before it', () => {
    const prompts = play(openContext(window), [good('a'), good('b'), good('c')]);
    const shown = showIds(prompts[2]!.append);
    expect(shown.match(/Turn \d|Reward:\n\S+|<think>.<\/think>/g)).toEqual([
      'Turn 2',
      '<think>b</think>',
      'Reward:\n-0.1',
      'Turn 3',
    ]);
    expect(prompts.map(prompt => prompt!.fresh)).toEqual([true, false, true]);
  });

  it('has one sample per turn: the prompt that the model received, and the answer, which alone is trained on', () => {
    const context = openContext(window);
    const prompts = play(context, [good('a'), good('b'), good('c')]);
    const samples = context.samples();
    expect(samples.map(({ turns }) => turns.map(({ turn }) => turn))).toEqual([[1], [2], [3]]);
    for (const [index, { ids, mask, turns }] of samples.entries()) {
      expect(showIds(ids.filter((_, token) => mask[token]))).toBe(`${good('abc'[index])}<|im_end|>`);
      expect(turns[0].span[1]).toBe(ids.length);
    }
    expect([...samples[2].ids.slice(0, samples[2].turns[0].span[0])]).toEqual(prompts[2]!.append);
  });

  it('contains all turns with an unlimited window, like the whole chat', () => {
    const limited = play(openContext({ ...window, max_context_window: -1 }), [good('a'), good('b')]);
    expect(limited).toEqual(play(openContext(), [good('a'), good('b')]));
    expect(limited).toEqual(play(openContext({ ...window, max_context_window: null }), [good('a'), good('b')]));
  });

  it('ignores the window in mode full, as RAGEN does', () => {
    const full = play(openContext({ max_context_window: 1 }), [good('a'), good('b')]);
    expect(full).toEqual(play(openContext(), [good('a'), good('b')]));
  });
});

describe('one message that summarizes the turns', () => {
  const window = { context_window_mode: 'single_turn', max_context_window: 3 } as const;

  it('is a separate prompt and sample in each turn', () => {
    const context = openContext(window);
    const prompts = play(context, [good('a'), good('b'), good('c'), good('d')]);
    expect(prompts.every(prompt => prompt?.fresh)).toBe(true);
    expect(showIds(prompts[3]!.append).match(/Turn \d State|Current Turn \(Turn \d\)/g)).toEqual([
      'Turn 2 State',
      'Turn 3 State',
      'Current Turn (Turn 4)',
    ]);
    expect(context.samples().map(({ turns }) => turns[0].turn)).toEqual([1, 2, 3, 4]);
    expect(context.messages.filter(({ role }) => role === 'user')).toHaveLength(4);
  });

  it('contains fewer turns if all would not fit', () => {
    const length = (turns: number) => {
      const unbounded = play(openContext({ ...window, max_context_window: turns }), [good('a'), good('b'), good('c')]);
      return unbounded[2]!.append.length;
    };
    const context = openContext({ ...window, max_model_len: length(2) + 10 });
    const prompts = play(context, [good('a'), good('b'), good('c')]);
    expect(prompts[2]!.append).toHaveLength(length(2));
    expect(context.shortened).toBe(true);
  });
});
