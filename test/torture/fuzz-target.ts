// A fuzz target: valid inputs, a call of the product's code, and its allowed outcomes. A target throws on any
// violation; allowed errors are listed by name, so a TypeError is never accepted.
import type { InputForm } from './fuzz-mutations';

export interface FuzzTarget {
  name: string;
  form: InputForm;
  corpus: readonly (string | Uint8Array)[];
  /** Share of all inputs, relative to other targets; slow targets have small weights. */
  weight: number;
  /** Maximum CPU milliseconds per input, for targets that start a process; replaces the default limit. */
  mostMs?: number;
  /** Names of the errors with which the parser may refuse an input. */
  lawful?: readonly string[];
  /**
   * Passes the input to the parser. The result is searched for unexpected prototypes.
   * @throws what the parser throws, and `Broken` if a result is invalid
   */
  run(input: Buffer): unknown;
  /** `begin` is called before the first input, `end` after the last. */
  begin?(): Promise<void> | void;
  end?(): Promise<void> | void;
}

/** A result that violates a guarantee. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** A path that leads out of a folder. */
export class Escaped extends Error {
  override readonly name = 'Escaped';
}

/**
 * @throws Broken with the sentence if the condition is false
 */
export function holds(condition: boolean, sentence: string): void {
  if (!condition) throw new Broken(sentence);
}
