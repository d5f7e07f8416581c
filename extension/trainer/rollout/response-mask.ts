// Determines on which tokens of a sample the policy is trained (RAGEN's masks and its option `enable_response_mask`).
// Element t of a mask refers to token t. RAGEN finds turns by the token with which every message begins, and RAGEN's
// masks are shifted by one token. As a result, RAGEN also trains on three other parts: the header of a response, the
// template's text after the response, and the first token of the next message. `ragenMask` reproduces RAGEN's masks
// exactly.
import { sampledMask, type RolloutSample } from './rollout-sample';

export type ContextWindowMode = 'full' | 'limited_multi_turn' | 'single_turn';

type MaskedSample = Pick<RolloutSample, 'ids' | 'turns'>;

export interface MaskRule {
  /** True if samples include the template's text after their last response. */
  closed: boolean;
  mask(sample: MaskedSample): Uint8Array;
}

export interface MaskOptions {
  mode: ContextWindowMode;
  /** If false, mode `full` trains on all tokens after the system message. */
  enable_response_mask: boolean;
  /** If true, the trained tokens are the same as RAGEN's (`workbench.compat: ragen`). */
  ragen: boolean;
}

/** Returns the mask rule of a run. `turnMarker` is the token with which every message begins. */
export function maskRule({ mode, enable_response_mask, ragen }: MaskOptions, turnMarker: number): MaskRule {
  if (mode === 'full' && !enable_response_mask)
    return { closed: ragen, mask: sample => conversationMask(sample, turnMarker) };
  return ragen
    ? { closed: true, mask: sample => ragenMask(sample, turnMarker, mode) }
    : { closed: false, mask: sampledMask };
}

/**
 * Returns RAGEN's response mask. For each response, the mask covers the header, the response, and all tokens up to and
 * including the next message's marker. In the windowed modes, the mask also covers the response's marker.
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
 * Returns RAGEN's mask without `enable_response_mask`: all tokens after the marker of the user message that precedes
 * the first response.
 */
function conversationMask({ ids, turns }: MaskedSample, turnMarker: number): Uint8Array {
  const answer = ids.lastIndexOf(turnMarker, turns[0].span[0] - 1);
  const user = ids.lastIndexOf(turnMarker, answer - 1);
  return new Uint8Array(ids.length).fill(1, user + 1);
}
