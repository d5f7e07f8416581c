// Pads ragged lists of token ids into the tensors that graphs take. Padding is on the right: under a causal mask no
// real token attends to it, so no further mask is needed.
import { float32, int64 } from './session';
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

/** Returns ids and positions [b, t], right-padded with id 0; row r starts at position `starts[r]` (default 0). */
export function padRows(
  rows: readonly ArrayLike<number>[],
  t: number,
  starts?: readonly number[],
): { ids: Tensor; positions: Tensor } {
  const ids = new BigInt64Array(rows.length * t);
  const positions = new BigInt64Array(rows.length * t);
  rows.forEach((row, r) => {
    const start = starts?.[r] ?? 0;
    for (let i = 0; i < row.length; i++) {
      ids[r * t + i] = BigInt(row[i]);
      positions[r * t + i] = BigInt(start + i);
    }
  });
  return { ids: int64(ids, [rows.length, t]), positions: int64(positions, [rows.length, t]) };
}
