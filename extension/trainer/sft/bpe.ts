// Trains a byte-level BPE vocabulary (Sennrich et al. 2016) on a small corpus and returns it in Hugging Face's
// tokenizer.json format. The pre-tokenizer isolates digits and board symbols, so that the model sees each symbol of a
// state as a token. In other text, merges may cross spaces (as in SuperBPE, Liu et al. 2025), so that each fixed
// sentence of a prompt becomes one or two tokens.

export interface BpeOptions {
  /** Number of tokens, including the 256 bytes and the added tokens. */
  vocabSize: number;
  /**
   * Regular expression in Hugging Face's syntax. Each match is one piece, and the text between two matches is one
   * piece; merges never cross the boundary between two pieces.
   */
  isolate: string;
  /** Tokens that are never split, in the order of their ids. Special tokens are omitted when ids are decoded. */
  added: readonly { content: string; special: boolean }[];
  /** Minimum number of times that a pair of tokens must occur to be merged. */
  minFrequency: number;
}

interface Word {
  symbols: string[];
  count: number;
}

/**
 * Returns the content of tokenizer.json. Of equally frequent pairs, the alphabetically first pair is merged first, so
 * the result is deterministic.
 */
export function trainBpe(corpus: Iterable<string>, options: BpeOptions): object {
  const addedPattern =
    options.added.length > 0 && new RegExp(`(${options.added.map(a => escape(a.content)).join('|')})`);
  const isolate = new RegExp(`(${options.isolate})`, 'gu');
  const counts = new Map<string, number>();
  for (const text of corpus) {
    for (const part of addedPattern ? text.split(addedPattern) : [text]) {
      if (options.added.some(a => a.content === part)) continue;
      for (const piece of part.split(isolate)) if (piece) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    }
  }
  const words: Word[] = [...counts].map(([piece, count]) => ({ symbols: toByteSymbols(piece), count }));
  const alphabet = byteAlphabet();
  const vocab = [...alphabet];
  const known = new Set(vocab);
  const merges: [string, string][] = [];
  while (vocab.length + options.added.length < options.vocabSize) {
    const best = mostFrequentPair(words);
    if (!best || best.count < options.minFrequency) break;
    const [left, right] = best.pair;
    merges.push([left, right]);
    if (!known.has(left + right)) {
      known.add(left + right);
      vocab.push(left + right);
    }
    for (const word of words) mergePair(word, left, right);
  }
  return tokenizerJson(vocab, merges, options);
}

function mostFrequentPair(words: readonly Word[]): { pair: [string, string]; count: number } | null {
  const counts = new Map<string, { pair: [string, string]; count: number }>();
  for (const { symbols, count } of words) {
    for (let i = 0; i + 1 < symbols.length; i++) {
      const key = `${symbols[i]} ${symbols[i + 1]}`;
      const entry = counts.get(key);
      if (entry) entry.count += count;
      else counts.set(key, { pair: [symbols[i], symbols[i + 1]], count });
    }
  }
  let best: { pair: [string, string]; count: number } | null = null;
  let bestKey = '';
  for (const [key, entry] of counts) {
    if (!best || entry.count > best.count || (entry.count === best.count && key < bestKey)) {
      best = entry;
      bestKey = key;
    }
  }
  return best;
}

function mergePair(word: Word, left: string, right: string): void {
  const { symbols } = word;
  for (let i = 0; i + 1 < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) symbols.splice(i, 2, left + right);
  }
}

function tokenizerJson(vocab: readonly string[], merges: readonly [string, string][], options: BpeOptions): object {
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: options.added.map(({ content, special }, i) => ({
      id: vocab.length + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex: options.isolate }, behavior: 'Isolated', invert: false },
        { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocab.map((token, id) => [token, id])),
      merges: merges.map(([left, right]) => [left, right]),
    },
  };
}

/** Returns the printable characters by which GPT-2 represents the 256 bytes, in byte order. */
function byteAlphabet(): string[] {
  const printable = (b: number): boolean => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  let extra = 0;
  return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(printable(b) ? b : 256 + extra++));
}

const alphabetByByte = byteAlphabet();

function toByteSymbols(text: string): string[] {
  return [...new TextEncoder().encode(text)].map(b => alphabetByByte[b]);
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
