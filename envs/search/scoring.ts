// Scores an answer by SQuAD's exact match and word overlap (RAGEN, SearchQA), and extracts the answer from free text.

export interface AnswerScore {
  exact: boolean;
  /** Highest of the F1 scores that the right answers give, 0 to 1. */
  f1: number;
}

const verdicts = new Set(['yes', 'no', 'noanswer']);

/** Normalizes an answer as SQuAD does: lower case, no ASCII punctuation, no articles, single spaces. */
export function normalized(text: string): string {
  return text
    .toLowerCase()
    .replace(/[!-/:-@[-`{-~]/g, '')
    .replace(/\b(a|an|the)\b/g, ' ')
    .split(/\s+/)
    .filter(word => word !== '')
    .join(' ');
}

/** Scores an answer against each right answer and returns the best scores. */
export function scoreAnswer(answer: string, right: readonly string[]): AnswerScore {
  const scores = right.map(gold => {
    const [given, wanted] = [normalized(answer), normalized(gold)];
    return { exact: given === wanted, f1: given === wanted ? 1 : overlap(given, wanted) };
  });
  return { exact: scores.some(({ exact }) => exact), f1: scores.reduce((best, { f1 }) => Math.max(best, f1), 0) };
}

/**
 * Returns the F1 score of two texts, compared as word lists with repetitions. The score is 0 if one of the texts is
 * "yes", "no" or "noanswer".
 */
function overlap(given: string, wanted: string): number {
  if (verdicts.has(given) || verdicts.has(wanted)) return 0;
  const left = wanted.split(' ');
  const words = given.split(' ');
  let same = 0;
  for (const word of words) {
    const at = left.indexOf(word);
    if (word === '' || at < 0) continue;
    left.splice(at, 1);
    same++;
  }
  if (same === 0) return 0;
  const [precision, recall] = [same / words.length, same / wanted.split(' ').length];
  return (2 * precision * recall) / (precision + recall);
}

/**
 * Extracts an answer from a text without an action. Tries in order: a boxed part, an emphasized part, the text after
 * "the answer is", the first sentence, the first 100 characters.
 */
export function answerIn(text: string): string {
  const plain = text
    .replace(/<think>.*?<\/think>/gs, '')
    .replace(/\s+/g, ' ')
    .trim();
  const boxed = /\\boxed\{([^}]+)\}/.exec(plain);
  if (boxed) return boxed[1].trim();
  for (const emphasis of [/\*\*([^*]+)\*\*/g, /\*([^*]+)\*/g]) {
    const marked = [...plain.matchAll(emphasis)].map(([, inner]) => inner.trim());
    const found = marked.find(inner => inner.length >= 3 && /\w/.test(inner));
    if (found) return found;
  }
  for (const lead of [/answer\s+is\s*:?\s*([^.!?]+)/i, /(?:therefore|thus|so|hence)\s*,?\s*([^.!?]+)/i]) {
    const found = lead.exec(plain)?.[1].replace(/^\W+|\W+$/g, '');
    if (found && found.length > 3) return found;
  }
  const sentence = plain.split(/[.!?]+/).find(part => part.trim().length > 5);
  return (sentence ?? plain.slice(0, 100)).trim();
}
