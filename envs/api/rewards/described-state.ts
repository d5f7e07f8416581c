// Compares a description of a state with the true state (VAGEN's state rewards, by rule). Both are texts in the same
// form. The value is 1 for an exact match, with partial credit: the F1 score of the facts that the two texts state.
import type { StateForm } from '../state-forms';

/**
 * Returns the agreement of a description with the true state, 0 to 1.
 * * `structured`: facts are the values of a JSON object by their keys; a list of values states one fact for each, in any
 *   order. Single quotes and parentheses, as in `{'player': (1, 2)}`, are read as JSON. A text that is no object has the
 *   value 0.
 * * `symbolic`: facts are the symbols of a grid by row and column, except the true state's most frequent symbol, which
 *   is taken as the background. White space within rows and blank lines are ignored.
 */
export function stateAgreement(form: Exclude<StateForm, 'natural_language'>, described: string, truth: string): number {
  if (form === 'structured') {
    const [stated, actual] = [objectFacts(described), objectFacts(truth)];
    return stated && actual ? f1(stated, actual) : 0;
  }
  const actual = gridCells(truth);
  const background = mostFrequent([...actual.values()]);
  return f1(cellFacts(gridCells(described), background), cellFacts(actual, background));
}

/** Maximum depth of lists and objects in a structured state. */
const deepest = 6;

/** Returns the facts of a structured state; undefined if the text is no JSON object. */
function objectFacts(text: string): string[] | undefined {
  const json = text.trim().replaceAll("'", '"').replaceAll('(', '[').replaceAll(')', ']');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return undefined;
  return Object.entries(value).flatMap(([key, item]) => factsOf(key, item, 0));
}

/** Returns the facts of a value. A list of numbers, such as a position, is one fact; other lists have one per item. */
function factsOf(at: string, value: unknown, depth: number): string[] {
  if (depth < deepest && Array.isArray(value) && value.some(item => typeof item !== 'number'))
    return value.flatMap((item: unknown) => factsOf(at, item, depth + 1));
  if (depth < deepest && value !== null && typeof value === 'object' && !Array.isArray(value))
    return Object.entries(value).flatMap(([key, item]) => factsOf(`${at}.${key}`, item, depth + 1));
  if (Array.isArray(value) && value.length === 0) return []; // an empty list states nothing
  return [`${at}=${JSON.stringify(value)}`];
}

/** Returns the symbols of a grid by `row,column`. */
function gridCells(text: string): Map<string, string> {
  const rows = text.split('\n').map(row => [...row.replace(/\s+/g, '')]);
  const cells = new Map<string, string>();
  rows.filter(row => row.length > 0).forEach((row, y) => row.forEach((symbol, x) => cells.set(`${y},${x}`, symbol)));
  return cells;
}

const cellFacts = (cells: ReadonlyMap<string, string>, background: string | undefined): string[] =>
  Array.from(cells, ([at, symbol]) => `${at}=${symbol}`).filter(fact => !fact.endsWith(`=${background}`));

function mostFrequent(symbols: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const symbol of symbols) counts.set(symbol, (counts.get(symbol) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

/** Returns the F1 score of two lists of facts, in which a fact may occur several times; 1 if both are empty. */
function f1(stated: readonly string[], actual: readonly string[]): number {
  if (stated.length + actual.length === 0) return 1;
  const left = new Map<string, number>();
  for (const fact of actual) left.set(fact, (left.get(fact) ?? 0) + 1);
  let right = 0;
  for (const fact of stated) {
    const count = left.get(fact) ?? 0;
    if (count === 0) continue;
    left.set(fact, count - 1);
    right++;
  }
  return (2 * right) / (stated.length + actual.length);
}
