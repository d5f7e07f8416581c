// The BPE trainer: hand-computed merges and vocabulary limits. For any text, decoding the encoded text returns the
// text.
import { Tokenizer } from '@huggingface/tokenizers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { trainBpe } from '../../../../extension/trainer/sft/bpe';
import type { BpeOptions } from '../../../../extension/trainer/sft/bpe';
import { corpus, ownTokenizer } from '../../../golden/tokenizer/fixture';

interface TokenizerJson {
  added_tokens: { id: number; content: string }[];
  model: { vocab: Record<string, number>; merges: [string, string][] };
}

const options: BpeOptions = { vocabSize: 300, isolate: String.raw`\d`, added: [], minFrequency: 2 };
const train = (texts: string[], changed: Partial<BpeOptions> = {}): TokenizerJson =>
  trainBpe(texts, { ...options, ...changed }) as TokenizerJson;
const merges = (json: TokenizerJson): string[] => json.model.merges.map(pair => pair.join('+'));
const pieces = (json: TokenizerJson, text: string): string[] =>
  new Tokenizer(json, {}).encode(text, { add_special_tokens: false }).tokens;

describe('merges', () => {
  it('are the most frequent pairs, in order', () => {
    // aaab ×2: a+a 4, a+b 2. After merging aa: aa+a 2, a+b 2; a+b is the smaller pair. Then aa+ab.
    expect(merges(train(['aaab', 'aaab']))).toEqual(['a+a', 'a+b', 'aa+ab']);
    expect(pieces(train(['aaab', 'aaab']), 'aaabaa')).toEqual(['aaab', 'aa']);
  });

  it('count a pair once for each occurrence of its piece', () => {
    expect(merges(train(['xy', 'xy', 'xy', 'ab', 'ab'], { vocabSize: 257 }))).toEqual(['x+y']);
  });

  it('prefer the smaller pair on a tie, whatever the order of the texts', () => {
    const texts = ['zq', 'zq', 'ab', 'ab'];
    expect(merges(train(texts))).toEqual(['a+b', 'z+q']);
    expect(train([...texts].reverse())).toEqual(train(texts));
  });

  it('end at the vocabulary size or below the minimum frequency', () => {
    const many = train(corpus, { vocabSize: 290, added: [{ content: '<end>', special: true }] });
    expect(Object.keys(many.model.vocab).length + 1).toBe(290);
    expect(merges(train(['abc', 'abd'], { minFrequency: 3 }))).toEqual([]);
    expect(merges(train(['abc', 'abd'], { minFrequency: 2 }))).toEqual(['a+b']);
  });

  it('may cross spaces, but not isolated pieces or added tokens', () => {
    const json = train(['in the box 7 in the box', 'in the box<end>in the box'], {
      added: [{ content: '<end>', special: true }],
      minFrequency: 1,
    });
    expect(pieces(json, 'in the box 77 in the box<end>')).toEqual(['inĠtheĠboxĠ', '7', '7', 'ĠinĠtheĠbox', '<end>']);
    expect(merges(json).filter(merge => /[7<>]/.test(merge))).toEqual([]);
  });

  it('operate on bytes: a rare character is several tokens, a frequent character becomes one token', () => {
    expect(pieces(train([]), '√')).toHaveLength(3);
    expect(pieces(train(['√', '√']), '√')).toHaveLength(1);
  });
});

describe('the vocabulary', () => {
  it('contains all bytes, then merges, then added tokens, numbered without gaps', () => {
    const { model, added_tokens } = ownTokenizer() as TokenizerJson;
    const ids = [...Object.values(model.vocab), ...added_tokens.map(({ id }) => id)];
    expect(ids.sort((a, b) => a - b)).toEqual(ids.map((_, i) => i));
    expect(new Set(Object.keys(model.vocab)).size).toBe(Object.keys(model.vocab).length);
    expect(Object.keys(model.vocab)).toHaveLength(373);
  });

  it('is byte for byte reproducible', async () => {
    const text = `${JSON.stringify(ownTokenizer(), null, 1)}\n`;
    await expect(text).toMatchFileSnapshot('../../../golden/tokenizer/own.json');
  });
});

describe('any text', () => {
  const tokenizer = new Tokenizer(ownTokenizer(), {});
  const encode = (text: string): number[] => tokenizer.encode(text, { add_special_tokens: false }).ids;
  const decode = (ids: number[]): string =>
    tokenizer.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  const familiar = fc.constantFrom('<think>', '<|im_end|>', ' || ', '######\n', 'You are ', '√', '\n', ' ', '_P_', '7');
  const text = fc
    .array(fc.oneof(fc.string({ unit: 'binary', maxLength: 6 }), fc.string({ maxLength: 6 }), familiar), {
      maxLength: 8,
    })
    .map(parts => parts.join(''));

  it('decodes to itself', () => {
    fc.assert(
      fc.property(text, text => {
        const ids = encode(text);
        expect(ids.length === 0 ? '' : decode(ids)).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  it('decodes to itself when its ids are concatenated from parts', () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), parts => {
        const ids = parts.flatMap(encode);
        expect(ids.length === 0 ? '' : decode(ids)).toBe(parts.join(''));
      }),
    );
  });

  it('of the corpus has fewer tokens than characters', () => {
    const text = corpus.join('\n');
    expect(encode(text).length).toBeLessThan(text.length / 2);
  });
});
