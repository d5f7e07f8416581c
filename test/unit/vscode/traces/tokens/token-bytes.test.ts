// Invalid vocabularies: ids too large for any list, and entries that are not tokens.
import { expect, it } from 'vitest';
import { tokenBytes } from '../../../../../extension/vscode/traces/tokens/token-bytes';
import { UserError } from '../../../../../extension/common/user-error';

const text = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString();
const file = (vocab: unknown): object => ({ decoder: null, model: { vocab } });

it('ids of any size are accepted, and an id that is not a number is ignored', () => {
  const bytes = tokenBytes(
    file({ a: 0, b: 4_294_967_295, c: -1, d: 1e308, e: 'x', f: null, length: 3 }),
    'tokenizer.json',
  );
  expect([0, 4_294_967_295, -1, 1e308, 3, 1].map(id => text(bytes.of(id)))).toEqual([
    'a',
    'b',
    'c',
    'd',
    'length',
    undefined,
  ]);
  expect(() => tokenBytes(file({ a: 'x' }), 'tokenizer.json')).toThrow(UserError);
});

it('a list of pairs may contain other entries', () => {
  const bytes = tokenBytes(file([null, ['▁a', -1], 5, [], [7], ['b']]), 'tokenizer.json');
  expect([0, 1, 2, 3, 4, 5].map(id => text(bytes.of(id)))).toEqual([
    undefined,
    ' a',
    undefined,
    undefined,
    undefined,
    'b',
  ]);
  expect(() => tokenBytes(file([null, [null]]), 'tokenizer.json')).toThrow(/tokenizer\.json contains no vocabulary/);
});
