// The actor on a Tinker server: reads log-probs under its current weights, and makes optimizer steps. The gradient of a
// step is computed on this machine and sent as a surrogate loss (surrogate.ts). The number of optimizer steps serves as
// the version of the weights.
import type { OptimizerOptions } from '../../engine/loss-options';
import type { WorkUnits } from '../../engine/work-units';
import { ReadNumbers } from './read-numbers';
import type { MaskedSample, ServerModel } from './server-model';
import type { ServerFacts } from './server-probe';
import { surrogateData } from './surrogate';
import type { Datum } from './tinker-wire';

export class ServerActor {
  /** Number of optimizer steps so far; serves as the version of the weights. */
  private steps = 0;
  /** Log-probs that the server has returned for the actor, by sample. */
  private readonly known = new ReadNumbers();

  constructor(
    readonly model: ServerModel,
    private readonly facts: ServerFacts,
  ) {}

  /** Number of optimizer steps so far, including the steps that led to the loaded state. */
  get updates(): number {
    return this.steps;
  }

  /** Reads log-probs under the current weights, and keeps them for `knownLogprobs`. */
  async score(samples: readonly MaskedSample[], units: WorkUnits): Promise<Float32Array[]> {
    const { steps } = this;
    const logprobs = await this.model.logprobs(samples, units);
    this.known.keep(samples, steps, logprobs);
    return logprobs;
  }

  /** Returns the samples' log-probs if `score` has read them under the current weights; otherwise undefined. */
  knownLogprobs(samples: readonly MaskedSample[]): readonly Float32Array[] | undefined {
    return this.known.get(samples, this.steps);
  }

  /**
   * Returns the data of an optimizer step. `logprobs` contains the log-probs under the current weights, and `gradients`
   * contains dL/dlogπ of each token. Returns null if a number is not finite.
   */
  surrogate(
    samples: readonly MaskedSample[],
    logprobs: readonly Float32Array[],
    gradients: readonly Float64Array[],
  ): Datum[] | null {
    const sent = [...samples.keys()].filter(i => samples[i].mask.includes(1));
    const at = <T>(values: readonly T[]): T[] => sent.map(i => values[i]);
    return surrogateData(at(samples), at(logprobs), at(gradients), this.facts.reduction);
  }

  /** Makes one optimizer step; returns the gradient norm that the server reports. */
  async step(data: readonly Datum[], optimizer: OptimizerOptions, units: WorkUnits): Promise<number> {
    const metrics = await this.model.step(data, optimizer, units);
    this.steps++;
    return metrics[this.facts.gradientNorm] ?? NaN;
  }

  /** Loads saved weights and optimizer state. `updates` is the number of optimizer steps that led to this state. */
  async load(path: string, updates: number): Promise<void> {
    await this.model.load(path);
    this.steps = updates;
  }
}
