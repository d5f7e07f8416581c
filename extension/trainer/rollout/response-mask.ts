// Which tokens of a sample are trained on (RAGEN's `enable_response_mask` and its masks). Here position t of a mask speaks of token t.
// RAGEN finds turns by the token that every message begins with and shifts its masks by one against the tokens, so that it also trains
// the header of an answer, what the template writes behind it, and the next message's first token; `ragenMask` is that, to the token.
import { sampledMask, type RolloutSample } from './rollout-batch';

export type ContextWindowMode = 'full' | 'limited_multi_turn' | 'single_turn';

type MaskedSample = Pick<RolloutSample, 'ids' | 'turns'>;

export interface MaskRule {
  /** Samples go on to what the template writes behind their last answer. */
  closed: boolean;
  mask(sample: MaskedSample): Uint8Array;
}

export interface MaskOptions {
  mode: ContextWindowMode;
  /** False trains, in mode `full`, on everything behind the system message. */
  enable_response_mask: boolean;
  /** Train on what RAGEN trains on. */
  ragen: boolean;
}

/** The rule of a run; `turnMarker` is the token that every message begins with. */
export function maskRule({ mode, enable_response_mask, ragen }: MaskOptions, turnMarker: number): MaskRule {
  if (mode === 'full' && !enable_response_mask)
    return { closed: ragen, mask: sample => conversationMask(sample, turnMarker) };
  return ragen
    ? { closed: true, mask: sample => ragenMask(sample, turnMarker, mode) }
    : { closed: false, mask: sampledMask };
}

/** RAGEN's response mask: an answer with its header up to the next message's marker; in the windowed modes its own marker too. */
export function ragenMask({ ids, turns }: MaskedSample, turnMarker: number, mode: ContextWindowMode): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const { span } of turns) {
    const marker = ids.lastIndexOf(turnMarker, span[0] - 1);
    const next = ids.indexOf(turnMarker, span[1]);
    mask.fill(1, mode === 'full' ? marker + 1 : marker, next < 0 ? ids.length : next + 1);
  }
  return mask;
}

/** RAGEN's mask without `enable_response_mask`: all from the first token of the user's message before the first of the answers. */
function conversationMask({ ids, turns }: MaskedSample, turnMarker: number): Uint8Array {
  const answer = ids.lastIndexOf(turnMarker, turns[0].span[0] - 1);
  const user = ids.lastIndexOf(turnMarker, answer - 1);
  return new Uint8Array(ids.length).fill(1, user + 1);
}
