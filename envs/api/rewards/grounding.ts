// Reward component `grounding`: how much of the state a thought names correctly, as VAGEN rewards a description of the
// state, but without a judge. Pure. The terms of a text are its content words, its numbers and its pairs of
// coordinates. A symbol such as the `#` of a board is no term.
import type { AnsweredTurn } from '../rewards';

/** Words that say nothing about a state. Words of one or two letters are never terms. */
const fillers = new Set(
  (
    'about above after again all also and any are because been before below being between both but can cannot could did ' +
    'does doing done down each for from further get has have having her here him his how into its just let like may ' +
    'more most must need not now off once one only other our out over own same she should some such than that the their ' +
    'them then there these they this those through too under until very was were what when where which while who why ' +
    'will with would you your'
  ).split(' '),
);

const pair = /[([]\s*(-?\d+)\s*,\s*(-?\d+)\s*[)\]]/g;
const number = /-?\d+(?:\.\d+)?/g;
const word = /\p{L}{3,}/gu;

/** The terms of a text; each set contains a term once. */
interface Terms {
  words: Set<string>;
  /** Numbers and pairs of coordinates in a canonical form, such as `4` and `(1,2)`. */
  facts: Set<string>;
}

function termsOf(text: string): Terms {
  const facts = new Set<string>();
  const rest = text.replace(pair, (_, first: string, second: string) => {
    facts.add(`(${Number(first)},${Number(second)})`);
    return ' ';
  });
  for (const [digits] of rest.matchAll(number)) facts.add(String(Number(digits)));
  const words = new Set(Array.from(rest.toLowerCase().matchAll(word), ([letters]) => letters));
  for (const filler of fillers) words.delete(filler);
  return { words, facts };
}

const shared = (terms: ReadonlySet<string>, others: ReadonlySet<string>): number =>
  [...terms].filter(term => others.has(term)).length;

/**
 * Returns the share of the state's terms that the thought names, times the share of the thought's numbers and
 * coordinates that are correct, that is, occur in the state. The value is 0…1; an answer without a thought has the value
 * 0. Returns undefined if the state has no terms, for example because it is a board of symbols.
 */
export function grounding({ state, thought }: Pick<AnsweredTurn, 'state' | 'thought'>): number | undefined {
  const [seen, named] = [termsOf(state), termsOf(thought ?? '')];
  const count = seen.words.size + seen.facts.size;
  if (count === 0) return undefined;
  const right = shared(named.facts, seen.facts);
  const correct = named.facts.size === 0 ? 1 : right / named.facts.size;
  return ((shared(named.words, seen.words) + right) / count) * correct;
}
