// Added tokens that match only whole words or include adjacent white space, against the tokenizers library
// (test/golden/make/added_tokens.py).
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { AddedTokens } from '../../../../extension/models/tokenizer/added-tokens';
import { TextEncoder } from '../../../../extension/models/tokenizer/text-encoder';

const { tokenizers, texts, ids } = JSON.parse(readFileSync('test/golden/chat/added-tokens.json', 'utf8')) as {
  tokenizers: Record<string, object>;
  texts: string[];
  ids: Record<string, number[][]>;
};

describe.each(Object.keys(tokenizers))('%s', name => {
  it('gives the ids of the tokenizers library for every text', () => {
    const encoder = new TextEncoder(tokenizers[name], {});
    expect(texts.length).toBeGreaterThan(400);
    const wrong = texts.flatMap((text, i) => {
      const [ours, theirs] = [encoder.encode(text), ids[name][i]];
      return ours.join() === theirs.join() ? [] : [{ text, ours, theirs }];
    });
    expect(wrong).toEqual([]);
  });
});

it('splits a text whose every character begins a token in linear time', () => {
  const tokens = new AddedTokens([
    { id: 1, content: 'ab', single_word: true },
    { id: 2, content: 'a b', rstrip: true },
  ]);
  const text = 'ab'.repeat(200_000);
  expect(tokens.split(text)).toEqual([text]);
  expect(tokens.split('a b   a b ab')).toEqual([2, 2, 1]);
});
