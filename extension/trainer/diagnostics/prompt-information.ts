// A proxy of I(X;Z) that needs texts only: how much better a thought is predicted if the other thoughts under the same
// prompt are known in addition to the thoughts under all prompts. Both predictions are mixtures of bigram models that
// leave the thought itself out. The models see words, not meanings, so thoughts that paraphrase each other look
// independent. docs/METRICS.md contains the measured rank correlation with I(X;Z). Pure and deterministic; the cost is
// bounded by `most`.

/** A thought and the number of its prompt, which the thoughts of one prompt share. */
export interface PromptedThought {
  prompt: number;
  thought: string;
}

/** Maximum number of prompts, of thoughts per prompt and of words per thought; the rest is left out. */
const most = { prompts: 64, thoughts: 8, words: 256 } as const;
/** Number of iterations that fit the weights of a mixture. */
const iterations = 50;

/**
 * Returns `thoughts/prompt_information` in nats per word, at least 0 except for rounding. Returns no metric if fewer than
 * two prompts have two thoughts. Of more than 64 prompts, 64 at equal distances are used.
 */
export function promptInformation(thoughts: readonly PromptedThought[]): Record<string, number> {
  const { texts, vocabulary } = sampledTexts(thoughts);
  if (texts.length === 0) return {};
  const [pool, own] = [new Bigrams(), new Map<number, Bigrams>()];
  for (const { prompt, words } of texts) {
    pool.add(words);
    const ofPrompt = own.get(prompt) ?? new Bigrams();
    own.set(prompt, ofPrompt);
    ofPrompt.add(words);
  }
  const predictions = texts.flatMap(({ prompt, words }) => {
    const self = new Bigrams();
    self.add(words);
    const [all, same] = [new Others(pool, self), new Others(own.get(prompt)!, self)];
    return words.map((word, i) => {
      const before = i === 0 ? start : words[i - 1];
      const smoothed = all.smoothed(before, word, vocabulary);
      const single = same.word(word);
      return [smoothed, all.after(before, word) ?? smoothed, same.after(before, word) ?? single, single];
    });
  });
  const anywhere = predictions.map(each => each.slice(0, 2));
  const gain = likelihood(predictions) - likelihood(anywhere);
  return { 'thoughts/prompt_information': Math.max(0, gain) };
}

/** Numbers of words; 0 stands for the beginning of a text. */
const start = 0;

interface SampledTexts {
  texts: { prompt: number; words: number[] }[];
  /** Number of different words. */
  vocabulary: number;
}

/** Chooses prompts and thoughts, and numbers their words from 1. Prompts with a single thought are left out. */
function sampledTexts(thoughts: readonly PromptedThought[]): SampledTexts {
  const members = new Map<number, string[]>();
  for (const { prompt, thought } of thoughts) {
    const list = members.get(prompt) ?? [];
    members.set(prompt, list);
    if (list.length < most.thoughts && thought.trim() !== '') list.push(thought);
  }
  const usable = [...members].filter(([, list]) => list.length > 1);
  if (usable.length < 2) return { texts: [], vocabulary: 0 };
  const count = Math.min(most.prompts, usable.length);
  const chosen = Array.from({ length: count }, (_, i) => usable[Math.floor((i * usable.length) / count)]);
  const numbers = new Map<string, number>();
  const numberOf = (word: string): number => {
    const number = numbers.get(word) ?? numbers.size + 1;
    numbers.set(word, number);
    return number;
  };
  const texts = chosen.flatMap(([prompt, list]) =>
    list.map(thought => ({ prompt, words: wordsOf(thought).map(numberOf) })),
  );
  return { texts, vocabulary: numbers.size };
}

/** Splits a text into words in lower case, numbers, and single characters of other kinds (Han characters, signs). */
function wordsOf(thought: string): string[] {
  const longest = 32 * most.words;
  const word = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]|\p{L}+|\p{N}+|[^\s\p{L}\p{N}]/gu;
  return (thought.trim().slice(0, longest).toLowerCase().match(word) ?? []).slice(0, most.words);
}

/** Counts of words and of pairs of adjacent words. */
class Bigrams {
  total = 0;
  readonly words = new Map<number, number>();
  /** How often a word precedes another one, and how many different words follow it. */
  readonly before = new Map<number, { count: number; kinds: number }>();
  readonly pairs = new Map<number, number>();

  add(words: readonly number[]): void {
    words.forEach((word, i) => {
      const previous = i === 0 ? start : words[i - 1];
      this.total++;
      this.words.set(word, (this.words.get(word) ?? 0) + 1);
      const pair = pairOf(previous, word);
      const seen = this.pairs.get(pair) ?? 0;
      this.pairs.set(pair, seen + 1);
      const at = this.before.get(previous) ?? { count: 0, kinds: 0 };
      this.before.set(previous, at);
      at.count++;
      if (seen === 0) at.kinds++;
    });
  }
}

/** Word numbers are below 2²⁰, because `most` bounds the number of all words. */
const pairOf = (before: number, word: number): number => before * 2 ** 20 + word;

/** Probabilities by the counts of a set of texts without one of its texts. */
class Others {
  /** For each word, the number of words that follow it only in the text that is left out. */
  private readonly ownKinds = new Map<number, number>();

  constructor(
    private readonly all: Bigrams,
    private readonly self: Bigrams,
  ) {
    for (const [pair, count] of self.pairs)
      if (all.pairs.get(pair) === count) {
        const before = Math.floor(pair / 2 ** 20);
        this.ownKinds.set(before, (this.ownKinds.get(before) ?? 0) + 1);
      }
  }

  /** Share of a word among the words; 0 without other words. */
  word(word: number): number {
    const rest = this.all.total - this.self.total;
    return rest === 0 ? 0 : this.countOf('words', word) / rest;
  }

  /** Share of a word among the words that follow `before`; undefined if none does. */
  after(before: number, word: number): number | undefined {
    const count = this.countBefore(before);
    return count === 0 ? undefined : this.countOf('pairs', pairOf(before, word)) / count;
  }

  /** Witten–Bell smoothing of `after`, with add-one smoothing of single words; positive for each word. */
  smoothed(before: number, word: number, vocabulary: number): number {
    const single = (this.countOf('words', word) + 1) / (this.all.total - this.self.total + vocabulary);
    const count = this.countBefore(before);
    if (count === 0) return single;
    const kinds = (this.all.before.get(before)?.kinds ?? 0) - (this.ownKinds.get(before) ?? 0);
    return (this.countOf('pairs', pairOf(before, word)) + kinds * single) / (count + kinds);
  }

  private countOf(kind: 'words' | 'pairs', key: number): number {
    return (this.all[kind].get(key) ?? 0) - (this.self[kind].get(key) ?? 0);
  }

  private countBefore(before: number): number {
    return (this.all.before.get(before)?.count ?? 0) - (this.self.before.get(before)?.count ?? 0);
  }
}

/**
 * Returns the mean logarithm of a mixture of predictions, one list per word, with the weights of largest likelihood, which
 * expectation maximisation finds. Further predictions cannot lower it, except for iterations that have not converged.
 */
function likelihood(predictions: readonly (readonly number[])[]): number {
  const count = predictions[0].length;
  let weights = new Array<number>(count).fill(1 / count);
  const mixed = (each: readonly number[]): number => {
    let sum = 0;
    for (let k = 0; k < count; k++) sum += weights[k] * each[k];
    return sum;
  };
  for (let round = 0; round < iterations; round++) {
    const shares = new Array<number>(count).fill(0);
    for (const each of predictions) {
      const sum = mixed(each);
      for (let k = 0; k < count; k++) shares[k] += (weights[k] * each[k]) / sum;
    }
    weights = shares.map(share => share / predictions.length);
  }
  let total = 0;
  for (const each of predictions) total += Math.log(mixed(each));
  return total / predictions.length;
}
