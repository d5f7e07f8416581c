// Trained parameters of a network with gradient and optimizer state. `ParameterBank` has two implementations: flat
// arrays on the host (this file), and tensors on a device (device-parameters.ts). The bank feeds parameters to graphs
// and sums the gradients that the graphs output. A step changes the parameters in place.
import { UserError } from '../../common/user-error';
import { AdamW } from '../../engine/optimizer/adamw';
import type { MomentFormat } from '../../engine/load-options';
import type { MomentState } from '../../engine/engine';
import type { OptimizerOptions } from '../../engine/loss-options';
import type { SessionOptions, Tensor } from '../../engine/session/session';
import type { ParameterSpec } from '../decoder/decoder-config';
import { gradientName } from '../graphs/policy-graphs';
import type { Weights } from './weights';

export interface ParameterBank {
  readonly specs: readonly ParameterSpec[];
  /** Number that increases whenever the parameters change. */
  readonly version: number;
  /** Returns the parameters as graph inputs, by name. */
  feeds(): Record<string, Tensor>;
  clearGradient(): void;
  /**
   * Adds the gradients returned by a session to the bank's gradient. The session may return the gradients of some
   * parameters only, for example those of a vision encoder.
   */
  accumulate(result: Readonly<Record<string, Tensor>>): Promise<void>;
  /**
   * Applies one AdamW step with the accumulated gradient. If the gradient is not finite, no parameter changes and
   * `applied` is false. `norm` is the gradient norm before clipping.
   */
  step(options: OptimizerOptions): Promise<{ norm: number; applied: boolean }>;
  /** Returns the parameters on the host. If the bank stores them on a device, returns a copy. */
  read(): Promise<Weights>;
  /** Returns the accumulated gradient before clipping, on the host. */
  readGradient(): Promise<Weights>;
  /** Overwrites the parameters with `weights`. */
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
      const part = (result[gradientName(name)] as Tensor | undefined)?.data as Float32Array | undefined;
      if (!part) continue;
      const total = gradient.view(name);
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
    if (!this.gradient) throw new Error('parameters: no gradient was computed yet');
    return this.gradient;
  }

  /** Creates the optimizer on the first step, because a policy used only for rollouts needs no moments. */
  private adamw(): Promise<AdamW> {
    return (this.optimizer ??= AdamW.create(this.weights.flat.length, this.options, this.format));
  }
}

/** Copies the moments of a checkpoint into an optimizer. Throws a UserError if format or length differ. */
export function copyMoments(target: MomentState, saved: MomentState): void {
  if (target.format !== saved.format)
    throw new UserError(
      `checkpoint: the saved optimizer moments are ${saved.format}, but the run uses ${target.format}: resume with optim.moments set to ${saved.format}`,
    );
  if (target.m.length !== saved.m.length)
    throw new UserError(
      `checkpoint: the saved optimizer moments are for ${saved.m.length} parameters, but the model trains ${target.m.length}: resume with the model that the checkpoint was saved from`,
    );
  target.m.set(saved.m);
  target.v.set(saved.v);
  if (target.format === 'int8' && saved.format === 'int8') {
    target.mScale.set(saved.mScale);
    target.vScale.set(saved.vScale);
  }
  target.step = saved.step;
}
