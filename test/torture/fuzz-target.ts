// What a fuzzed parser is: valid inputs, the call of the product's own code, and what it may answer. A target throws what it should not; errors
// that are an answer are named, so that a TypeError is never one.
import type { InputForm } from './fuzz-mutations';

export interface FuzzTarget {
  name: string;
  form: InputForm;
  corpus: readonly (string | Uint8Array)[];
  /** Share of the inputs, beside the others'; slow ones take few. */
  weight: number;
  /** Milliseconds of CPU that an input may take, where it starts a process. */
  mostMs?: number;
  /** Names of the errors that are a lawful answer. */
  lawful?: readonly string[];
  /**
   * Gives the input to the parser. What it returns is looked through for prototypes that are not plain. @throws what the parser throws, and a
   * `Broken` where a result is not what it must be
   */
  run(input: Buffer): unknown;
  /** Before the first input, and after the last. */
  begin?(): Promise<void> | void;
  end?(): Promise<void> | void;
}

/** A result that breaks a promise. */
export class Broken extends Error {
  override readonly name = 'Broken';
}

/** A way out of a folder. */
export class Escaped extends Error {
  override readonly name = 'Escaped';
}

/** @throws Broken with the sentence where it does not hold */
export function holds(condition: boolean, sentence: string): void {
  if (!condition) throw new Broken(sentence);
}
