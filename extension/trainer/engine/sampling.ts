// Draws one token from a row of logits: temperature, then top-k, then top-p (nucleus: the smallest set whose mass reaches top_p),
// by inverse CDF with one uniform. The reported log-prob is under the temperature-scaled distribution before the cuts, which is what
// the training graph computes for the same token.

export interface SamplingCuts {
  temperature: number;
  top_p: number;
  top_k: number;
  do_sample: boolean;
}

export interface Draw {
  token: number;
  logprob: number;
}

const scratch = { size: 0, p: new Float64Array(0) };

/** `logits` holds a row at [offset, offset + vocab); `uniform` in [0, 1). */
export function drawToken(
  logits: Float32Array,
  offset: number,
  vocab: number,
  cuts: SamplingCuts,
  uniform: number,
): Draw {
  if (scratch.size < vocab) Object.assign(scratch, { size: vocab, p: new Float64Array(vocab) });
  const { p } = scratch;
  const inverse = 1 / cuts.temperature;
  let best = 0;
  for (let i = 1; i < vocab; i++) if (logits[offset + i] > logits[offset + best]) best = i;
  const top = logits[offset + best] * inverse;
  let total = 0;
  for (let i = 0; i < vocab; i++) total += p[i] = Math.exp(logits[offset + i] * inverse - top);
  const pick = (token: number): Draw => ({ token, logprob: Math.log(p[token] / total) });

  if (!cuts.do_sample) return pick(best);
  if (cuts.top_p >= 1 && cuts.top_k <= 0) return pick(invert(p, vocab, uniform * total));

  const order = Array.from({ length: vocab }, (_, i) => i).sort((a, b) => p[b] - p[a] || a - b);
  let kept = cuts.top_k > 0 ? Math.min(cuts.top_k, vocab) : vocab;
  let mass = 0;
  const target = cuts.top_p * sumOf(p, order, kept);
  for (let i = 0; i < kept; i++) {
    mass += p[order[i]];
    if (cuts.top_p < 1 && mass >= target) kept = i + 1;
  }
  let left = uniform * sumOf(p, order, kept);
  for (let i = 0; i < kept; i++) {
    left -= p[order[i]];
    if (left < 0) return pick(order[i]);
  }
  return pick(order[kept - 1]);
}

/** First index whose cumulative weight exceeds `target`; rounding at the end falls to the last index with weight. */
function invert(p: Float64Array, n: number, target: number): number {
  let cumulative = 0;
  let last = 0;
  for (let i = 0; i < n; i++) {
    if (p[i] === 0) continue;
    cumulative += p[i];
    last = i;
    if (cumulative > target) return i;
  }
  return last;
}

function sumOf(p: Float64Array, order: readonly number[], count: number): number {
  let sum = 0;
  for (let i = 0; i < count; i++) sum += p[order[i]];
  return sum;
}
