// A language model that fits into a test: the logits of the next token are a row of a table, chosen by the last token.
// It is what the Tinker peer (tinker-peer.ts) trains: sampling, log-probs, losses, gradients and AdamW are exact. Copies
// share their rows until a step replaces them, and only rows with a gradient have moments, so that a model of thousands
// of tokens costs what its used rows cost.
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

/** Logits of the next token and their moments; never changed once it is in a model. */
interface TrainedRow {
  logits: Float64Array;
  adam: Adam;
}

/** Log-probs by the logits from which they were computed. */
const distributions = new WeakMap<Float64Array, Float64Array>();

/** `leaning`: logits that are added for tokens of any context. */
export class BigramModel {
  /** Rows that a step has changed, by last token. */
  private trained = new Map<number, TrainedRow>();
  private gradient = new Map<number, Float64Array>();
  private steps = 0;
  /** Factor of all other rows: the product of their weight decays. */
  private decay = 1;
  /** Samples whose gradients are accumulated. */
  private samples = 0;
  /** Sum of their weights. */
  private weight = 0;

  constructor(
    readonly vocabSize: number,
    private readonly reduction: Reduction,
    private readonly seed = 1,
    private readonly leaning: Readonly<Record<number, number>> = {},
    /** First logits by last token, shared by all copies. */
    private readonly start = new Map<number, Float64Array>(),
  ) {}

  /** Logits, [last token][next token]. */
  get table(): Float64Array {
    const table = new Float64Array(this.vocabSize ** 2);
    for (let last = 0; last < this.vocabSize; last++) table.set(this.logits(last), last * this.vocabSize);
    return table;
  }

  /** Logits of the rows that steps have changed, in the order of their tokens; of the first row if there are none. */
  get trainedRows(): Float64Array[] {
    const tokens = this.trained.size > 0 ? [...this.trained.keys()].sort((a, b) => a - b) : [0];
    return tokens.map(last => this.logits(last));
  }

  private logits(last: number): Float64Array {
    const row = this.trained.get(last)?.logits;
    if (row) return row;
    let first = this.start.get(last);
    if (!first) {
      const stream = new RandomStream(this.seed * 2 ** 20 + last);
      first = Float64Array.from({ length: this.vocabSize }, () => stream.uniform() * 2);
      for (const [token, logit] of Object.entries(this.leaning)) first[Number(token)] += logit;
      this.start.set(last, first);
    }
    return this.decay === 1 ? first : first.map(x => x * this.decay);
  }

  /** Log-probs of all next tokens. */
  private distribution(last: number): Float64Array {
    const row = this.logits(last);
    const known = distributions.get(row);
    if (known) return known;
    let top = -Infinity;
    for (const x of row) top = Math.max(top, x);
    let sum = 0;
    for (const x of row) sum += Math.exp(x - top);
    const base = top + Math.log(sum);
    const logprobs = row.map(x => x - base);
    distributions.set(row, logprobs);
    return logprobs;
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
      const total = this.reduction.tokens === 'mean' ? weights.reduce((sum, w) => sum + w, 0) : 1;
      const found = input.map((last, i) => {
        const row = this.distribution(last);
        const logprob = row[targets[i]];
        const slope = loss === 'cross_entropy' ? -1 : -Math.exp(logprob - logprobs[i]) * advantages[i];
        const share = weights[i] === 0 ? 0 : (weights[i] * slope) / total;
        if (share !== 0) this.addGradient(last, targets[i], row, share);
        return logprob;
      });
      this.samples++;
      this.weight += weights.reduce((sum, w) => sum + w, 0);
      return found;
    });
  }

  private addGradient(last: number, target: number, logprobs: Float64Array, share: number): void {
    const gradient = this.gradient.get(last) ?? new Float64Array(this.vocabSize);
    for (let j = 0; j < gradient.length; j++) gradient[j] -= share * Math.exp(logprobs[j]);
    gradient[target] += share;
    this.gradient.set(last, gradient);
  }

  /** Makes one step of AdamW with the accumulated gradient; returns its norm. */
  optimize(options: AdamParameters): number {
    const share = this.reduction.samples === 'mean' ? 1 / Math.max(this.samples, 1) : 1;
    const scale = this.reduction.tokens === 'batch mean' ? 1 / Math.max(this.weight, 1e-9) : share;
    let squares = 0;
    const zero = new Float64Array(this.vocabSize);
    for (const last of new Set([...this.trained.keys(), ...this.gradient.keys()])) {
      const gradient = this.gradient.get(last)?.map(sum => sum * scale) ?? zero;
      const logits = this.logits(last).slice();
      const adam = this.trained.get(last)?.adam.copy() ?? new Adam(this.vocabSize, this.steps);
      adam.step(logits, gradient, options);
      this.trained.set(last, { logits, adam });
      for (const g of gradient) squares += g ** 2;
    }
    this.decay *= 1 - options.learning_rate * options.weight_decay;
    this.steps++;
    this.gradient.clear();
    [this.samples, this.weight] = [0, 0];
    return Math.sqrt(squares);
  }

  /** A copy of weights and optimizer state. */
  copy(): BigramModel {
    const other = new BigramModel(this.vocabSize, this.reduction, this.seed, this.leaning, this.start);
    other.trained = new Map(this.trained);
    for (const [last, gradient] of this.gradient) other.gradient.set(last, gradient.slice());
    [other.steps, other.decay] = [this.steps, this.decay];
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
