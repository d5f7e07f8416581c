// The trained parameters of a network with their gradient and optimizer state, behind one interface, wherever they live: on the host in
// flat arrays (here), or on a device. The graphs are fed the parameters, what they put out is added to the gradient, and a step
// changes the parameters in place.
import { UserError } from '../../protocol/user-error';
import { AdamW } from '../engine/adamw';
import type { MomentFormat, MomentState, OptimizerOptions } from '../engine/engine';
import type { SessionOptions, Tensor } from '../engine/session';
import type { ParameterSpec } from './decoder-config';
import { gradientName } from './policy-graphs';
import type { Weights } from './weights';

export interface ParameterBank {
  readonly specs: readonly ParameterSpec[];
  /** Grows whenever the parameters change. */
  readonly version: number;
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
  private changes = 0;

  constructor(
    private readonly weights: Weights,
    private readonly options: SessionOptions,
    private readonly format: MomentFormat = 'float32',
  ) {}

  get specs(): readonly ParameterSpec[] {
    return this.weights.specs;
  }

  get version(): number {
    return this.changes;
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
    this.changes++;
    return (await this.adamw()).step(this.weights.flat, this.lastGradient.flat, options);
  }

  async read(): Promise<Weights> {
    return this.weights;
  }

  async readGradient(): Promise<Weights> {
    return this.lastGradient;
  }

  async write(weights: Weights): Promise<void> {
    this.changes++;
    this.weights.flat.set(weights.flat);
  }

  async moments(): Promise<MomentState> {
    return structuredClone((await this.adamw()).state);
  }

  async restoreMoments(saved: MomentState): Promise<void> {
    const { state } = await this.adamw();
    copyMoments(state, saved);
  }

  private get lastGradient(): Weights {
    if (!this.gradient) throw new Error('parameters: no gradient was taken yet');
    return this.gradient;
  }

  /** Made on first use: a policy that only plays needs no moments. */
  private adamw(): Promise<AdamW> {
    return (this.optimizer ??= AdamW.create(this.weights.flat.length, this.options, this.format));
  }
}

/** Copies a checkpoint's moments over those of an optimizer that holds them in the same way. Throws a UserError where it does not. */
export function copyMoments(target: MomentState, saved: MomentState): void {
  if (target.format !== saved.format)
    throw new UserError(
      `checkpoint: its moments are in ${saved.format} but the optimizer's in ${target.format}: resume with optim.moments set to ${saved.format}`,
    );
  if (target.m.length !== saved.m.length)
    throw new UserError(
      `checkpoint: it holds ${saved.m.length} numbers where the model has ${target.m.length}: resume with the model it was made with`,
    );
  target.m.set(saved.m);
  target.v.set(saved.v);
  if (target.format === 'int8' && saved.format === 'int8') {
    target.mScale.set(saved.mScale);
    target.vScale.set(saved.vScale);
  }
  target.step = saved.step;
}
