import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shown, spell } from '../../../../../extension/vscode/traces/tokens/spelling';
import { tokenBytes } from '../../../../../extension/vscode/traces/tokens/token-bytes';

/** Byte sequences cut into tokens at arbitrary positions, also inside characters. */
const cutBytes = (bytes: fc.Arbitrary<Uint8Array>) =>
  fc.tuple(bytes, fc.array(fc.nat(), { maxLength: 12 })).map(([all, cuts]) => {
    const positions = [...new Set([0, ...cuts.map(cut => cut % (all.length + 1)), all.length])].sort((a, b) => a - b);
    return positions.slice(1).map((to, i) => all.slice(positions[i], to));
  });
const text = fc.string({ unit: 'binary', maxLength: 40 }).map(each => new TextEncoder().encode(each));
const anyBytes = fc.uint8Array({ maxLength: 60 });

describe('token spelling', () => {
  it('equals the decoded bytes of all tokens', () => {
    fc.assert(
      fc.property(cutBytes(fc.oneof(text, anyBytes)), tokens => {
        expect(spell(tokens).text).toBe(shown(Buffer.concat(tokens).toString('utf8')));
      }),
    );
  });

  it('gives every token a range that contains its text; ranges increase and cover everything', () => {
    fc.assert(
      fc.property(cutBytes(fc.oneof(text, anyBytes)), tokens => {
        const { text: whole, ranges } = spell(tokens);
        expect(ranges).toHaveLength(tokens.length);
        let reached = 0;
        ranges.forEach(({ from, to }, i) => {
          expect(from).toBeLessThanOrEqual(reached); // no gap between two tokens
          expect(to).toBeGreaterThanOrEqual(reached);
          reached = to;
          const own = shown(Buffer.from(tokens[i]).toString('utf8'));
          const inner = own.replace(/^\uFFFD+|\uFFFD+$/g, ''); // without characters that are only partly in the token
          expect(whole.slice(from, to)).toContain(inner);
          if (!own.includes('\uFFFD')) expect(whole.slice(from, to)).toBe(own);
        });
        expect(reached).toBe(whole.length);
      }),
    );
  });

  it('shares a character between the tokens that split it', () => {
    const [a, b] = ['é']
      .map(each => new TextEncoder().encode(each))
      .map(bytes => [bytes.slice(0, 1), bytes.slice(1)])[0];
    const x = new TextEncoder().encode('x');
    expect(spell([x, a, b, x])).toEqual({
      text: 'xéx',
      ranges: [
        { from: 0, to: 1 },
        { from: 1, to: 2 },
        { from: 1, to: 2 },
        { from: 2, to: 3 },
      ],
    });
  });
});

describe('tokenizer alphabets', () => {
  const added = [{ id: 4, content: '<|im_end|>', special: true }];

  it('decode GPT-2’s characters as bytes', () => {
    const file = {
      model: { vocab: { Ġa: 0, Ã: 1, '©': 2, Ċ: 3 } },
      decoder: { type: 'ByteLevel' },
      added_tokens: added,
    };
    const bytes = tokenBytes(file, 'x');
    expect([0, 1, 2, 3].map(id => [...bytes.of(id)!])).toEqual([[0x20, 0x61], [0xc3], [0xa9], [0x0a]]);
    expect(Buffer.from(bytes.of(4)!).toString()).toBe('<|im_end|>');
    expect([bytes.isSpecial(4), bytes.isSpecial(0), bytes.of(99)]).toEqual([true, false, undefined]);
  });

  it('decode SentencePiece’s spaces and bytes', () => {
    const decoder = { type: 'Sequence', decoders: [{ type: 'Replace' }, { type: 'ByteFallback' }] };
    const bytes = tokenBytes(
      {
        model: {
          vocab: [
            ['▁a', 0],
            ['<0x0A>', 0],
          ],
        },
        decoder,
      },
      'x',
    );
    expect([0, 1].map(id => [...bytes.of(id)!])).toEqual([[0x20, 0x61], [0x0a]]);
  });

  it('name the file that contains no vocabulary', () => {
    expect(() => tokenBytes({}, '/runs/a/tokenizer.json')).toThrow('/runs/a/tokenizer.json contains no vocabulary');
  });
});
