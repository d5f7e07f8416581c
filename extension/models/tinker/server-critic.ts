// A critic on a Tinker server: returns the values of tokens, and makes optimizer steps on the clipped value loss. SkyRL
// offers critics as the model role "critic", which only its FSDP backend supports. The loss and its gradient are
// computed on this machine (algorithms/value-loss.ts), and the server receives a surrogate loss with the same gradient
// (value-surrogate.ts).
import { weightedValueLoss } from '../../algorithms/value-loss';
import type { CriticLossOptions, OptimizerOptions, UpdateMetrics } from '../../engine/loss-options';
import type { CriticSample } from '../../engine/training-samples';
import { unwatched, type WorkUnits } from '../../engine/work-units';
import { ReadNumbers } from './read-numbers';
import type { MaskedSample, ServerModel } from './server-model';
import { valueSurrogateData } from './value-surrogate';

export class ServerCritic {
  /** Values that the server has returned, by sample. */
  private readonly known = new ReadNumbers();
  /** Number of optimizer steps so far; serves as the version of the weights. */
  private steps = 0;

  constructor(
    readonly model: ServerModel,
    /** Name under which the server reports the gradient norm among the metrics of an optimizer step. */
    private readonly gradientNorm: string,
  ) {}

  /** Returns the values of the masked tokens under the current weights; 0 where mask = 0. */
  async values(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    const read = this.known.get(samples, this.steps);
    if (read) return read;
    const values = await this.model.values(samples, units);
    this.known.keep(samples, this.steps, values);
    return values;
  }

  /**
   * Makes one optimizer step. If the loss is not finite, the weights stay unchanged and the metric `skipped` is 1.
   * `values` must have been computed with the current weights.
   */
  async update(
    samples: readonly CriticSample[],
    values: readonly Float32Array[],
    { cliprange_value }: CriticLossOptions,
    optimizer: OptimizerOptions,
  ): Promise<UpdateMetrics> {
    const sequences = samples.map(({ mask, old_values, returns }, i) => ({
      values: values[i],
      old_values,
      returns,
      mask,
    }));
    const weights = samples.map(sample => sample.weights);
    const { gradients, metrics } = weightedValueLoss(sequences, weights, cliprange_value);
    const sent = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    const at = <T>(all: readonly T[]): T[] => sent.map(i => all[i]);
    const data = valueSurrogateData(at(samples), at(values), at(gradients));
    const measured = { ...metrics, lr: optimizer.lr };
    if (!data) return { ...measured, grad_norm: NaN, skipped: 1 };
    const reported = await this.model.step(data, optimizer, unwatched);
    this.steps++;
    return { ...measured, grad_norm: reported[this.gradientNorm] ?? NaN, skipped: 0 };
  }

  /** Saves weights and optimizer state on the server. Returns the address, and the number of optimizer steps so far. */
  async save(newName: () => string): Promise<{ path: string; updates: number }> {
    return { path: await this.model.save(newName), updates: this.steps };
  }

  /** Loads weights and optimizer state that `save` has saved. */
  async load({ path, updates }: { path: string; updates: number }): Promise<void> {
    await this.model.load(path);
    this.steps = updates;
  }
}
