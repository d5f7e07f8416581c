// Pieces of tokens concatenate to the full text, also when a character is spread over tokens and when a decoder writes
// spaces between tokens.
import { expect, it } from 'vitest';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { tokenPieces } from '../../../../extension/models/tokenizer/token-pieces';

const tiny = readTokenizer('media/models/ragen-tiny');

it.each([
  '<think>Go Up\n\n  twice</think><answer>Up || Up</answer>',
  'Ωmega 🧊 naïve — 走る',
  '<|im_start|>user\nx<|im_end|>',
])('the pieces of %s concatenate to the text', text => {
  const ids = tiny.encode(text);
  const pieces = tokenPieces(tiny, ids);
  expect(pieces).toHaveLength(ids.length);
  expect(pieces.join('')).toBe(tiny.decode(ids, { special: true }));
  expect(pieces.join('')).toBe(text);
});

it('an incomplete character is shown as such, at the end and in the middle', () => {
  const ice = tiny.encode('🧊');
  expect(ice.length).toBeGreaterThan(1);
  expect(tokenPieces(tiny, ice.slice(0, -1)).join('')).toMatch(/^\uFFFD+$/);
  const broken = [...ice.slice(0, 1), ...tiny.encode('abc def')];
  expect(tokenPieces(tiny, broken).join('')).toMatch(/^\uFFFD+abc def$/);
});

it('a decoder that strips the space of the first word keeps those of the others', () => {
  const words = ['▁Go', '▁up', 's', '▁now'];
  const decode = (ids: readonly number[]): string =>
    ids
      .map(id => words[id].replace('▁', ' '))
      .join('')
      .trimStart();
  expect(tokenPieces({ decode }, [0, 1, 2, 3])).toEqual(['Go', ' up', 's', ' now']);
});
