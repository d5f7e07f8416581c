// The additive causal mask of attention. Padding is on the right: no real token attends to it under a causal mask, so a
// padding mask is not needed.
import { float32 } from './session';
import type { Tensor } from './session';

const masks = new Map<number, Tensor>();
/**
 * Number that is added to the scores of masked positions. The number is far below real scores, but finite, so that the
 * softmax of a fully masked row is defined.
 */
export const masked = -1e9;

/** Additive causal mask [t, t]. */
export function causalMask(t: number): Tensor {
  let mask = masks.get(t);
  if (!mask) {
    const data = new Float32Array(t * t);
    for (let i = 0; i < t; i++) data.fill(masked, i * t + i + 1, (i + 1) * t);
    mask = float32(data, [t, t]);
    if (masks.size > 64) masks.clear();
    masks.set(t, mask);
  }
  return mask;
}
