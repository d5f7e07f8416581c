// Context masks: pure functions that choose which tokens of earlier responses the model still sees, while it samples and
// while it is trained on what it sampled. RAGEN has no such masks; they try two ideas for which no paper gives a number:
// leave out what an action does not need, and trust turns by the policy's own confidence (credit-mask.ts weighs credit).
import { maximum } from '../common/lists';
import { confidence } from './credit-mask';

/** A response of an earlier turn. */
export interface PastResponse {
  /** Sampled ids. */
  ids: readonly number[];
  /** Log-probs of the sampled ids under the sampler, in nats. */
  logprobs: readonly number[];
  /** Range [from, to) of the ids of the thought's text; empty if the thought has no text or is not closed. */
  thought: readonly [number, number];
}

/**
 * A context mask: returns, for each earlier response of an episode, whether each of its ids is shown. It is called
 * again in each turn, with one response more. The last id of a response must be shown, because it may end the message.
 */
export type ContextMask = (past: readonly PastResponse[]) => readonly (readonly boolean[])[];

const withoutThought = ({ ids, thought: [from, to] }: PastResponse): boolean[] =>
  ids.map((_, at) => at < from || at >= to);

const complete = ({ ids }: PastResponse): boolean[] => ids.map(() => true);

const masks = {
  past_thoughts: past => past.map(withoutThought),
  unsure_thoughts: past => {
    const confidences = past.map(({ logprobs }) => confidence(logprobs));
    const best = maximum(confidences, 0);
    return past.map((response, turn) => (confidences[turn] < best ? withoutThought(response) : complete(response)));
  },
} satisfies Record<string, ContextMask>;

/** Values of `workbench.context_mask`. */
export const contextMasks = ['none', 'past_thoughts', 'unsure_thoughts'] as const;
export type ContextMaskName = (typeof contextMasks)[number];

/**
 * Returns the mask of a name; null for `none`. `past_thoughts` leaves out the thoughts of all earlier turns.
 * `unsure_thoughts` leaves out all thoughts but that of the earlier turn whose tokens had the highest geometric mean of
 * their probabilities.
 */
export const contextMask = (name: ContextMaskName): ContextMask | null => (name === 'none' ? null : masks[name]);

/** Returns the ids that a mask shows of each earlier response. */
export function shownIds(mask: ContextMask, past: readonly PastResponse[]): number[][] {
  const shown = mask(past);
  return past.map(({ ids }, turn) => ids.filter((_, at) => shown[turn][at]));
}
