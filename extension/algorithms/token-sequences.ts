// Per-token helpers shared by the advantage estimators. A batch is a list of unpadded sequences of different lengths;
// position t of every array belongs to token t, and mask 1 marks the tokens that the policy sampled.

/**
 * Returns an array of zeros with `values[i]` added at `positions[i]`. Used to place the episode score at the last
 * sampled token, or a reward at each turn end.
 */
export function placeRewards(length: number, positions: readonly number[], values: readonly number[]): Float32Array {
  const rewards = new Float32Array(length);
  positions.forEach((position, index) => (rewards[position] += values[index]));
  return rewards;
}

/** Returns per-token advantages: every sampled token has the advantage of its sample, other tokens have 0. */
export function spreadOverTokens(advantages: ArrayLike<number>, masks: readonly Uint8Array[]): Float32Array[] {
  return masks.map((mask, sample) => Float32Array.from(mask, bit => (bit ? advantages[sample] : 0)));
}

/**
 * Whitens values over all sampled tokens of the batch, in place: (x − mean)/sqrt(var + 1e-8) with unbiased variance;
 * other tokens become 0. With fewer than two sampled tokens in the batch, all values become 0.
 */
export function whitenTokens(sequences: readonly Float32Array[], masks: readonly Uint8Array[]): void {
  let count = 0;
  let sum = 0;
  forEachSampled(masks, (row, token) => {
    count++;
    sum += sequences[row][token];
  });
  const mean = count > 0 ? sum / count : 0;
  let squares = 0;
  forEachSampled(masks, (row, token) => (squares += (sequences[row][token] - mean) ** 2));
  const scale = count > 1 ? 1 / Math.sqrt(squares / (count - 1) + 1e-8) : 0;
  sequences.forEach((values, row) =>
    values.forEach((value, token) => (values[token] = masks[row][token] ? (value - mean) * scale : 0)),
  );
}

function forEachSampled(masks: readonly Uint8Array[], visit: (row: number, token: number) => void): void {
  masks.forEach((mask, row) => mask.forEach((bit, token) => bit && visit(row, token)));
}
