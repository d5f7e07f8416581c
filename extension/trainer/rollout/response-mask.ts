// Which tokens of a sample are trained on (RAGEN's `enable_response_mask` and its masks). Position t of a mask here
// refers to token t. RAGEN finds turns by the token that begins every message and shifts its masks by one against the
// tokens, so it also trains a response's header, what the template writes after it, and the next message's first token;
// `ragenMask` reproduces this exactly.
import { sampledMask, type RolloutSample } from './rollout-sample';

export type ContextWindowMode = 'full' | 'limited_multi_turn' | 'single_turn';

type MaskedSample = Pick<RolloutSample, 'ids' | 'turns'>;

export interface MaskRule {
  /** Whether samples include what the template writes after their last response. */
  closed: boolean;
  mask(sample: MaskedSample): Uint8Array;
}

export interface MaskOptions {
  mode: ContextWindowMode;
  /** If false, mode `full` trains on everything after the system message. */
  enable_response_mask: boolean;
  /** Train on the same tokens as RAGEN. */
  ragen: boolean;
}

/** Returns the mask rule of a run; `turnMarker` is the token that every message begins with. */
export function maskRule({ mode, enable_response_mask, ragen }: MaskOptions, turnMarker: number): MaskRule {
  if (mode === 'full' && !enable_response_mask)
    return { closed: ragen, mask: sample => conversationMask(sample, turnMarker) };
  return ragen
    ? { closed: true, mask: sample => ragenMask(sample, turnMarker, mode) }
    : { closed: false, mask: sampledMask };
}

/**
 * RAGEN's response mask: a response with its header up to and including the next message's marker; in the windowed
 * modes also its own marker.
 */
export function ragenMask({ ids, turns }: MaskedSample, turnMarker: number, mode: ContextWindowMode): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const { span } of turns) {
    const marker = ids.lastIndexOf(turnMarker, span[0] - 1);
    const next = ids.indexOf(turnMarker, span[1]);
    mask.fill(1, mode === 'full' ? marker + 1 : marker, next < 0 ? ids.length : next + 1);
  }
  return mask;
}

/**
 * RAGEN's mask without `enable_response_mask`: everything from the first token of the user message before the first
 * response.
 */
function conversationMask({ ids, turns }: MaskedSample, turnMarker: number): Uint8Array {
  const answer = ids.lastIndexOf(turnMarker, turns[0].span[0] - 1);
  const user = ids.lastIndexOf(turnMarker, answer - 1);
  return new Uint8Array(ids.length).fill(1, user + 1);
}
