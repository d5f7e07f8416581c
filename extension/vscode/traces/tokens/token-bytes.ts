// Bytes of each token id, from a tokenizer.json. The text of an episode is decoded from its recorded token ids; it is
// never tokenized again. A token maps to bytes instead of text, because a byte-level token may contain part of a
// character. Supports two alphabets. In GPT-2's alphabet (Qwen, Llama 3), each character stands for a byte. In
// SentencePiece's alphabet (Llama 2, Gemma), ▁ stands for a blank and <0x0A> for a byte. Pure functions.
import { z } from 'zod';
import { UserError } from '../../../common/user-error';

/** Bytes of a token by id; undefined if the vocabulary lacks the id. */
export interface TokenBytes {
  of(id: number): Uint8Array | undefined;
  /** Whether the token is omitted from decoded text, as turn markers are. */
  isSpecial(id: number): boolean;
}

const fileSchema = z.object({
  added_tokens: z.array(z.object({ id: z.number(), content: z.string(), special: z.boolean() })).default([]),
  decoder: z.unknown(),
  model: z.object({ vocab: z.unknown() }),
});

const encoder = new TextEncoder();

/**
 * Returns the vocabulary of a parsed tokenizer.json.
 * @throws UserError with the name `file`, if `parsed` contains no vocabulary
 */
export function tokenBytes(parsed: unknown, file: string): TokenBytes {
  const read = fileSchema.safeParse(parsed);
  const vocabulary = read.success ? vocabularyOf(read.data.model.vocab) : undefined;
  if (!read.success || !vocabulary)
    throw new UserError(`${file} contains no vocabulary: replace the file with the model’s tokenizer.json`);
  const { added_tokens, decoder } = read.data;
  const spelled = usesByteLevel(decoder) ? byteLevelBytes : sentencePieceBytes;
  const added = new Map(added_tokens.map(token => [token.id, token]));
  const known = new Map<number, Uint8Array>();
  return {
    of(id) {
      const text = added.get(id)?.content ?? vocabulary.get(id);
      if (text === undefined) return undefined;
      const bytes = known.get(id) ?? (added.has(id) ? encoder.encode(text) : spelled(text));
      known.set(id, bytes);
      return bytes;
    },
    isSpecial: id => added.get(id)?.special ?? false,
  };
}

/**
 * Returns tokens by id. A BPE vocabulary is an object that maps tokens to ids; a Unigram vocabulary is a list of pairs.
 */
function vocabularyOf(vocab: unknown): Map<number, string> | undefined {
  const tokens = new Map<number, string>();
  if (Array.isArray(vocab))
    for (const [id, entry] of vocab.entries()) {
      const token: unknown = Array.isArray(entry) ? entry[0] : undefined;
      if (typeof token === 'string') tokens.set(id, token);
    }
  else if (typeof vocab === 'object' && vocab !== null)
    for (const [token, id] of Object.entries(vocab)) if (typeof id === 'number') tokens.set(id, token);
  return tokens.size > 0 ? tokens : undefined;
}

function usesByteLevel(decoder: unknown): boolean {
  if (typeof decoder !== 'object' || decoder === null) return false;
  const { type, decoders } = decoder as { type?: unknown; decoders?: unknown };
  return type === 'ByteLevel' || (Array.isArray(decoders) && decoders.some(usesByteLevel));
}

/**
 * Decodes GPT-2's alphabet: a printable Latin-1 character stands for its own byte, and characters from U+0100 on stand
 * for the other bytes.
 */
const byteOf = (() => {
  const bytes = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    bytes.set(String.fromCharCode(printable ? byte : next++), byte);
  }
  return bytes;
})();

function byteLevelBytes(token: string): Uint8Array {
  const bytes = [...token].map(character => byteOf.get(character));
  return bytes.includes(undefined) ? encoder.encode(token) : Uint8Array.from(bytes as number[]);
}

function sentencePieceBytes(token: string): Uint8Array {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
  return byte === undefined ? encoder.encode(token.replaceAll('▁', ' ')) : Uint8Array.of(Number.parseInt(byte, 16));
}
