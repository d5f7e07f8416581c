// Demonstrations of the model ragen-small: what a demonstrated response is made from, and the words that all
// environments share. A thought begins with facts of the state. If the demonstrator `looks`, the thought goes on with
// what follows from the facts, and the answer follows from it; otherwise the thought ends in `guess.`, and the answer is
// random. A model that imitates a mixture knows both, so reinforcement learning can raise its success by looking more
// often.
import type { RandomStream } from '../../../engine/sampling/random-stream';
import type { Demonstration } from '../demonstrated-response';

export interface ResponseRequest {
  /** The observation as the model sees it. */
  state: string;
  /** The solver's next actions, in order; empty if the environment has no solver or the solver finds no solution. */
  plan: readonly string[];
  looks: boolean;
  /** Maximum number of actions in the answer. */
  mostActions: number;
  stream: RandomStream;
}

/** Returns a response; null if the state has an unknown format. */
export type Respond = (request: ResponseRequest) => Demonstration | null;

export const guess = 'guess.';

/** Returns an element of a list that is not empty. */
export const pick = <T>(list: readonly T[], stream: RandomStream): T => list[stream.integer(list.length)];

/** Returns 1 to `most` random elements of a list, which may be equal. */
export const pickSome = <T>(list: readonly T[], most: number, stream: RandomStream): T[] =>
  Array.from({ length: 1 + stream.integer(most) }, () => pick(list, stream));
