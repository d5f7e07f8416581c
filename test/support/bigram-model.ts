// A language model that fits into a test: the logits of the next token are a row of a table, chosen by the last token.
// It is what the Tinker peer (tinker-peer.ts) trains: sampling, log-probs, losses, gradients and Adam are exact.
import { RandomStream } from '../../extension/engine/sampling/random-stream';

export interface BigramDatum {
  input: number[];
  targets: number[];
  weights: number[];
  logprobs: number[];
  advantages: number[];
}

export type LossName = 'cross_entropy' | 'importance_sampling';

export interface AdamParameters {
  learning_rate: number;
  beta1: number;
  beta2: number;
  eps: number;
  weight_decay: number;
}

/** `leaning`: logits that are added for tokens of any context. */
export class BigramModel {
  /** Logits, [last token][next token]. */
  table: Float64Array;
  private m: Float64Array;
  private v: Float64Array;
  private steps = 0;
  private gradient: Float64Array;
  /** Samples whose gradients are accumulated. */
  private samples = 0;

  constructor(
    readonly vocabSize: number,
    private readonly reduction: { tokens: 'sum' | 'mean'; samples: 'sum' | 'mean' },
    seed = 1,
    leaning: Readonly<Record<number, number>> = {},
  ) {
    const stream = new RandomStream(seed);
    this.table = Float64Array.from({ length: vocabSize ** 2 }, () => stream.uniform() * 2);
    for (const [token, logit] of Object.entries(leaning))
      for (let last = 0; last < vocabSize; last++) this.table[last * vocabSize + Number(token)] += logit;
    [this.m, this.v, this.gradient] = [0, 0, 0].map(() => new Float64Array(vocabSize ** 2));
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
      return found;
    });
  }

  /** Makes one step of Adam with the accumulated gradient; returns its norm. */
  optimize({ learning_rate, beta1, beta2, eps, weight_decay }: AdamParameters): number {
    const share = this.reduction.samples === 'mean' ? 1 / Math.max(this.samples, 1) : 1;
    this.steps++;
    let norm = 0;
    this.gradient.forEach((sum, i) => {
      const g = sum * share;
      norm += g ** 2;
      this.m[i] = beta1 * this.m[i] + (1 - beta1) * g;
      this.v[i] = beta2 * this.v[i] + (1 - beta2) * g ** 2;
      const [m, v] = [this.m[i] / (1 - beta1 ** this.steps), this.v[i] / (1 - beta2 ** this.steps)];
      this.table[i] -= learning_rate * (m / (Math.sqrt(v) + eps) + weight_decay * this.table[i]);
    });
    this.gradient.fill(0);
    this.samples = 0;
    return Math.sqrt(norm);
  }

  /** A copy of weights and optimizer state. */
  copy(): BigramModel {
    const other = new BigramModel(this.vocabSize, this.reduction);
    other.table = this.table.slice();
    [other.m, other.v, other.gradient] = [this.m.slice(), this.v.slice(), this.gradient.slice()];
    [other.steps, other.samples] = [this.steps, this.samples];
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
