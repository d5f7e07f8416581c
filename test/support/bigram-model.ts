// A language model that fits into a test: the logits of the next token are a row of a table, chosen by the last token.
// It is what the Tinker peer (tinker-peer.ts) trains: sampling, log-probs, losses, gradients and Adam are exact.
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { Adam, type AdamParameters } from './adam';

export interface BigramDatum {
  input: number[];
  targets: number[];
  weights: number[];
  logprobs: number[];
  advantages: number[];
}

/** How losses are reduced over tokens and samples; `batch mean`: over the tokens of all samples. */
export interface Reduction {
  tokens: 'sum' | 'mean' | 'batch mean';
  samples: 'sum' | 'mean';
}

export type LossName = 'cross_entropy' | 'importance_sampling';

/** `leaning`: logits that are added for tokens of any context. */
export class BigramModel {
  /** Logits, [last token][next token]. */
  table: Float64Array;
  private adam: Adam;
  private gradient: Float64Array;
  /** Samples whose gradients are accumulated. */
  private samples = 0;
  /** Sum of their weights. */
  private weight = 0;

  constructor(
    readonly vocabSize: number,
    private readonly reduction: Reduction,
    seed = 1,
    leaning: Readonly<Record<number, number>> = {},
  ) {
    const stream = new RandomStream(seed);
    this.table = Float64Array.from({ length: vocabSize ** 2 }, () => stream.uniform() * 2);
    for (const [token, logit] of Object.entries(leaning))
      for (let last = 0; last < vocabSize; last++) this.table[last * vocabSize + Number(token)] += logit;
    this.gradient = new Float64Array(vocabSize ** 2);
    this.adam = new Adam(vocabSize ** 2);
  }

  /** Log-probs of all next tokens. */
  private distribution(last: number): Float64Array {
    const row = this.table.subarray(last * this.vocabSize, (last + 1) * this.vocabSize);
    const top = row.reduce((most, x) => Math.max(most, x), -Infinity);
    const sum = row.reduce((total, x) => total + Math.exp(x - top), 0);
    return row.map(x => x - top - Math.log(sum));
  }

  logprobs(input: readonly number[], targets: readonly number[]): number[] {
    return input.map((last, i) => this.distribution(last)[targets[i]]);
  }

  sample(prompt: readonly number[], count: number, stop: readonly number[], seed: number, temperature: number) {
    const stream = new RandomStream(seed);
    const [tokens, logprobs]: [number[], number[]] = [[], []];
    let last = prompt.at(-1)!;
    while (tokens.length < count) {
      const row = this.distribution(last);
      last = temperature === 0 ? row.indexOf(Math.max(...row)) : drawn(row, stream.uniform(), temperature);
      tokens.push(last);
      logprobs.push(row[last]);
      if (stop.includes(last)) return { stop_reason: 'stop', tokens, logprobs };
    }
    return { stop_reason: 'length', tokens, logprobs };
  }

  /** Adds the gradient of a loss; returns the log-probs of the targets. */
  accumulate(data: readonly BigramDatum[], loss: LossName): number[][] {
    return data.map(({ input, targets, weights, logprobs, advantages }) => {
      const found = this.logprobs(input, targets);
      const total = this.reduction.tokens === 'mean' ? weights.reduce((sum, w) => sum + w, 0) : 1;
      found.forEach((logprob, i) => {
        const slope = loss === 'cross_entropy' ? -1 : -Math.exp(logprob - logprobs[i]) * advantages[i];
        const share = weights[i] === 0 ? 0 : (weights[i] * slope) / total;
        const row = this.distribution(input[i]);
        for (let j = 0; j < this.vocabSize; j++)
          this.gradient[input[i] * this.vocabSize + j] += share * (Number(j === targets[i]) - Math.exp(row[j]));
      });
      this.samples++;
      this.weight += weights.reduce((sum, w) => sum + w, 0);
      return found;
    });
  }

  /** Makes one step of Adam with the accumulated gradient; returns its norm. */
  optimize(options: AdamParameters): number {
    const share = this.reduction.samples === 'mean' ? 1 / Math.max(this.samples, 1) : 1;
    const scale = this.reduction.tokens === 'batch mean' ? 1 / Math.max(this.weight, 1e-9) : share;
    const gradient = this.gradient.map(sum => sum * scale);
    this.adam.step(this.table, gradient, options);
    this.gradient.fill(0);
    [this.samples, this.weight] = [0, 0];
    return Math.sqrt(gradient.reduce((sum, g) => sum + g ** 2, 0));
  }

  /** A copy of weights and optimizer state. */
  copy(): BigramModel {
    const other = new BigramModel(this.vocabSize, this.reduction);
    other.table = this.table.slice();
    [other.gradient, other.adam] = [this.gradient.slice(), this.adam.copy()];
    [other.samples, other.weight] = [this.samples, this.weight];
    return other;
  }
}

function drawn(row: Float64Array, uniform: number, temperature: number): number {
  const weights = row.map(x => Math.exp(x / temperature));
  let left = uniform * weights.reduce((sum, w) => sum + w, 0);
  return Math.max(
    0,
    weights.findIndex(w => (left -= w) < 0),
  );
}
