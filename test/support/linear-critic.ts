// A critic that fits into a test: the value of a state is an entry of a table, chosen by the last token. The Tinker peer
// trains it by SkyRL's formulas (ppo_critic_loss, CriticWorkerBase.optim_step): half the larger of the clipped and the
// unclipped squared error, its mean over a sample's weights, then over the samples until the optimizer step.
import { Adam, type AdamParameters } from './adam';

export interface CriticDatum {
  input: number[];
  weights: number[];
  values: number[];
  returns: number[];
}

export class LinearCritic {
  /** Value of each last token. */
  table: Float64Array;
  private gradient: Float64Array;
  private samples = 0;
  private adam: Adam;

  constructor(readonly vocabSize: number) {
    this.table = new Float64Array(vocabSize);
    this.gradient = new Float64Array(vocabSize);
    this.adam = new Adam(vocabSize);
  }

  values(input: readonly number[]): number[] {
    return input.map(last => this.table[last]);
  }

  /** Adds the gradient of the loss; without `clip`, values are not clipped. */
  accumulate(data: readonly CriticDatum[], clip: number | undefined): void {
    for (const { input, weights, values: old, returns } of data) {
      const total = Math.max(
        1,
        weights.reduce((sum, w) => sum + w, 0),
      );
      input.forEach((last, i) => {
        const value = this.table[last];
        const held = clip === undefined ? value : old[i] + Math.max(-clip, Math.min(clip, value - old[i]));
        const [clipped, plain] = [(held - returns[i]) ** 2, (value - returns[i]) ** 2];
        const slope = clipped > plain && held !== value ? 0 : value - returns[i];
        this.gradient[last] += (weights[i] * slope) / total;
      });
      this.samples++;
    }
  }

  /** Makes one step of Adam with the mean gradient of the samples; returns its norm. */
  optimize(options: AdamParameters): number {
    const mean = this.gradient.map(sum => sum / Math.max(this.samples, 1));
    this.adam.step(this.table, mean, options);
    this.gradient.fill(0);
    this.samples = 0;
    return Math.hypot(...mean);
  }

  /** A copy of weights and optimizer state. */
  copy(): LinearCritic {
    const other = new LinearCritic(this.vocabSize);
    [other.table, other.gradient] = [this.table.slice(), this.gradient.slice()];
    [other.samples, other.adam] = [this.samples, this.adam.copy()];
    return other;
  }
}
