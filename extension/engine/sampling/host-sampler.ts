// Samples one token from a row of logits on the host. Supports all "cuts": top-k, top-p, min-p and repetition penalty.
// Top-p keeps the smallest set of tokens whose total probability reaches top_p. Order: repetition penalty, temperature,
// top-k, top-p, min-p, then inverse CDF with one uniform number. Order and semantics match transformers and vLLM. The
// returned log-prob is that of the temperature-scaled distribution without penalty and cuts, because the training graph
// computes the same log-prob. Distributions without cuts are sampled in the graph (graph-sampler.ts).

export interface SamplingCuts {
  temperature: number;
  /** Minimum cumulative probability of the kept tokens; 1 = off. */
  top_p: number;
  /** Number of most likely tokens to keep; −1 or 0 = off. */
  top_k: number;
  /** Minimum probability of a kept token, as a share of the most likely token's probability; 0 = off. */
  min_p: number;
  /**
   * Positive logits of tokens that occurred before are divided by this number, and negative logits are multiplied by
   * it; 1 = off.
   */
  repetition_penalty: number;
  do_sample: boolean;
}

export interface Draw {
  token: number;
  logprob: number;
}

/** Whether sampling is greedy or has no cuts; the graph sampler supports only these two cases. */
export const isUncut = ({ top_p, top_k, min_p, repetition_penalty, do_sample }: SamplingCuts): boolean =>
  repetition_penalty === 1 && (!do_sample || (top_p >= 1 && top_k <= 0 && min_p <= 0));

const scratch = { p: new Float64Array(0), scores: new Float64Array(0) };

/**
 * Samples one token. The row's logits are `logits` at [offset, offset + vocab); `uniform` is in [0, 1); `seen` contains
 * the ids that occurred in the row. The log-prob is NaN if the logits are not finite.
 */
export function drawToken(
  logits: Float32Array,
  offset: number,
  vocab: number,
  cuts: SamplingCuts,
  uniform: number,
  seen: Iterable<number> = [],
): Draw {
  if (scratch.p.length < vocab) Object.assign(scratch, { p: new Float64Array(vocab), scores: new Float64Array(vocab) });
  const { p, scores } = scratch;
  const inverse = 1 / cuts.temperature;
  let top = -Infinity;
  for (let i = 0; i < vocab; i++) if (logits[offset + i] > top) top = logits[offset + i];
  if (!Number.isFinite(top)) return { token: 0, logprob: NaN }; // callers must check the log-prob for NaN
  const scored = (logit: number): number => (logit - top) * inverse; // at most 0, so exp cannot overflow
  let total = 0;
  for (let i = 0; i < vocab; i++) total += Math.exp((scores[i] = scored(logits[offset + i])));
  const logTotal = Math.log(total);
  const pick = (token: number): Draw => ({ token, logprob: scored(logits[offset + token]) - logTotal });

  const { repetition_penalty: penalty } = cuts;
  if (penalty !== 1)
    for (const id of new Set(seen)) {
      const logit = logits[offset + id];
      if (id < vocab) scores[id] = scored(logit > 0 ? logit / penalty : logit * penalty);
    }
  let best = 0;
  for (let i = 1; i < vocab; i++) if (scores[i] > scores[best]) best = i;
  if (!cuts.do_sample) return pick(best);
  let mass = 0;
  for (let i = 0; i < vocab; i++) mass += p[i] = Math.exp(scores[i] - scores[best]);
  if (cuts.top_p >= 1 && cuts.top_k <= 0 && cuts.min_p <= 0) return pick(invert(p, vocab, uniform * mass));

  const order = topTokens(p, vocab, mass, cuts);
  let kept = cuts.top_k > 0 ? Math.min(cuts.top_k, order.length) : order.length;
  if (cuts.top_p < 1) {
    const target = cuts.top_p * (cuts.top_k > 0 ? sumOf(p, order, kept) : mass);
    let reached = 0;
    for (let i = 0; i < kept; i++) {
      reached += p[order[i]];
      if (reached >= target) kept = i + 1;
    }
  }
  while (kept > 1 && p[order[kept - 1]] < cuts.min_p) kept--; // the most likely token has weight 1
  let left = uniform * sumOf(p, order, kept);
  for (let i = 0; i < kept; i++) {
    left -= p[order[i]];
    if (left < 0) return pick(order[i]);
  }
  return pick(order[kept - 1]);
}

/**
 * Returns tokens in order of descending probability, at least as many as the cuts can keep. Sorting the complete
 * vocabulary would take longer than the model's forward pass. Therefore only tokens whose weight reaches a threshold
 * are collected and sorted. If these tokens do not suffice, the threshold is lowered.
 */
function topTokens(p: Float64Array, vocab: number, mass: number, { top_k, top_p, min_p }: SamplingCuts): number[] {
  for (let threshold = 2 ** -8; ; threshold *= 2 ** -8) {
    const floor = threshold < 2 ** -120 ? 0 : threshold;
    const found: number[] = [];
    let sum = 0;
    for (let i = 0; i < vocab; i++) {
      if (p[i] < floor) continue;
      found.push(i);
      sum += p[i];
    }
    const enough =
      floor === 0 ||
      (top_k > 0 && found.length >= top_k) ||
      (top_k <= 0 && top_p < 1 && sum >= top_p * mass) ||
      (floor <= min_p && !(top_k > 0 && top_p < 1)); // top-p applies to all tokens kept by top-k, before min-p
    if (enough) return found.sort((a, b) => p[b] - p[a] || a - b);
  }
}

/**
 * Returns the first index whose cumulative weight exceeds `target`. If rounding errors leave no such index, returns the
 * last index with a weight above 0.
 */
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
