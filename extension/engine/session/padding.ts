// The additive causal mask of attention. Padding is on the right: under a causal mask no real token attends to it, so
// no further mask is needed.
import { float32 } from './session';
import type { Tensor } from './session';

const masks = new Map<number, Tensor>();
/** Added to the scores of masked positions; far below any real score but finite, so no softmax row is empty. */
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
