// The trained parameters of a network with their gradient and optimizer state, behind one interface, wherever they live: on the host in
// flat arrays (here), or on a device. The graphs are fed the parameters, what they put out is added to the gradient, and a step
// changes the parameters in place.
import { UserError } from '../../protocol/user-error';
import { AdamW } from '../engine/adamw';
import type { MomentState, OptimizerOptions } from '../engine/engine';
import type { SessionOptions, Tensor } from '../engine/session';
import type { ParameterSpec } from './decoder-config';
import { gradientName } from './policy-graphs';
import type { Weights } from './weights';

export interface ParameterBank {
  readonly specs: readonly ParameterSpec[];
  /** Feeds of the parameters, by name. */
  feeds(): Record<string, Tensor>;
  clearGradient(): void;
  /** Adds the gradients that a session put out. */
  accumulate(result: Readonly<Record<string, Tensor>>): Promise<void>;
  /** One AdamW step on the gradient; a gradient that is not finite changes nothing. */
  step(options: OptimizerOptions): Promise<{ norm: number; applied: boolean }>;
  /** The parameters on the host; a copy where they live elsewhere. */
  read(): Promise<Weights>;
  /** The gradient of the last step before clipping, on the host. */
  readGradient(): Promise<Weights>;
  /** Copies `weights` over the parameters. */
  write(weights: Weights): Promise<void>;
  moments(): Promise<MomentState>;
  restoreMoments(state: MomentState): Promise<void>;
}

export class HostParameters implements ParameterBank {
  private gradient?: Weights;
  private optimizer?: Promise<AdamW>;

  constructor(
    private readonly weights: Weights,
    private readonly options: SessionOptions,
  ) {}

  get specs(): readonly ParameterSpec[] {
    return this.weights.specs;
  }

  feeds(): Record<string, Tensor> {
    return this.weights.feeds();
  }

  clearGradient(): void {
    this.gradient ??= this.weights.like();
    this.gradient.flat.fill(0);
  }

  async accumulate(result: Readonly<Record<string, Tensor>>): Promise<void> {
    const gradient = this.lastGradient;
    for (const { name } of this.specs) {
      const total = gradient.view(name);
      const part = result[gradientName(name)].data as Float32Array;
      for (let i = 0; i < total.length; i++) total[i] += part[i];
    }
  }

  async step(options: OptimizerOptions): Promise<{ norm: number; applied: boolean }> {
    return (await this.adamw()).step(this.weights.flat, this.lastGradient.flat, options);
  }

  async read(): Promise<Weights> {
    return this.weights;
  }

  async readGradient(): Promise<Weights> {
    return this.lastGradient;
  }

  async write(weights: Weights): Promise<void> {
    this.weights.flat.set(weights.flat);
  }

  async moments(): Promise<MomentState> {
    const { state } = await this.adamw();
    return { m: state.m.slice(), v: state.v.slice(), step: state.step };
  }

  async restoreMoments({ m, v, step }: MomentState): Promise<void> {
    const { state } = await this.adamw();
    copyInto(state.m, m);
    copyInto(state.v, v);
    state.step = step;
  }

  private get lastGradient(): Weights {
    if (!this.gradient) throw new Error('parameters: no gradient was taken yet');
    return this.gradient;
  }

  /** Made on first use: a policy that only plays needs no moments. */
  private adamw(): Promise<AdamW> {
    return (this.optimizer ??= AdamW.create(this.weights.flat.length, this.options));
  }
}

export function copyInto(target: Float32Array, source: Float32Array): void {
  if (target.length !== source.length)
    throw new UserError(
      `checkpoint: it holds ${source.length} numbers where the model has ${target.length}: resume with the model it was made with`,
    );
  target.set(source);
}
