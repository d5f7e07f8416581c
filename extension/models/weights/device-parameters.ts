// Trained parameters of a network on a device: weights, gradients and optimizer state stay on the device between steps.
// Only the gradient norm is downloaded, to decide whether the step is applied. `DeviceParameters` owns its tensors, and
// disposes of a tensor when another tensor replaces it.
import { UserError } from '../../common/user-error';
import { coefficientFeeds, normGraph, stepGraph } from '../../engine/optimizer/adamw';
import { dispose } from '../../engine/session/device-tensor';
import type { MomentFormat } from '../../engine/load-options';
import type { MomentState } from '../../engine/engine';
import type { OptimizerOptions } from '../../engine/loss-options';
import { Graph } from '../../engine/graph/graph';
import { binary } from '../../engine/graph/ops';
import { Session, float32, loweringOf } from '../../engine/session/session';
import type { SessionOptions, Tensor } from '../../engine/session/session';
import { Transfer } from '../../engine/session/transfer';
import { elements } from '../decoder/decoder-config';
import type { ParameterSpec } from '../decoder/decoder-config';
import { HostParameters, copyMoments } from './parameter-bank';
import type { ParameterBank } from './parameter-bank';
import { gradientName } from '../graphs/policy-graphs';
import { Weights } from './weights';

/**
 * Maximum bytes of the parameters that one session updates. While the session runs, the old and new values of these
 * parameters are both in memory, so a lower limit reduces the peak memory.
 */
const groupBytes = 2 ** 28;

/**
 * Returns the parameter bank of a network for the provider in `options`. Throws a UserError if the provider cannot
 * store the optimizer's moments in `format`.
 */
export async function openBank(
  weights: Weights,
  options: SessionOptions,
  format: MomentFormat = 'float32',
): Promise<ParameterBank> {
  // CUDA returns tensors to the host after every run, so the step runs on the host.
  if (options.provider !== 'webgpu') return new HostParameters(weights, { ...options, provider: 'cpu' }, format);
  if (format !== 'float32')
    throw new UserError(
      `config: optim.moments is ${format}, but on WebGPU moments stay on the device in float32: set optim.moments to float32, or workbench.device to cpu`,
    );
  return DeviceParameters.create(weights, options);
}

type Tensors = Map<string, Tensor>;

export class DeviceParameters implements ParameterBank {
  private gradient: Tensors = new Map();
  private readonly m: Tensors = new Map();
  private readonly v: Tensors = new Map();
  private taken = 0;
  private changes = 0;
  private readonly transfer: Transfer;
  private readonly sessions = new Map<string, Promise<Session>>();

  private constructor(
    readonly specs: readonly ParameterSpec[],
    private readonly parameters: Tensors,
    private readonly options: SessionOptions,
  ) {
    this.transfer = new Transfer(options);
  }

  /** Copies `weights` to the device; later steps do not change `weights`. */
  static async create(weights: Weights, options: SessionOptions): Promise<DeviceParameters> {
    const bank = new DeviceParameters(weights.specs, new Map(), options);
    await bank.write(weights);
    return bank;
  }

  get version(): number {
    return this.changes;
  }

  feeds(): Record<string, Tensor> {
    return Object.fromEntries(this.parameters);
  }

  clearGradient(): void {
    dispose(this.gradient.values());
    this.gradient = new Map();
  }

  /**
   * Adds the gradients that a session returned, and takes ownership of their tensors, which may be on the device or on
   * the host.
   */
  async accumulate(result: Readonly<Record<string, Tensor>>): Promise<void> {
    const parts: Tensors = new Map();
    for (const { name, dims } of this.specs) {
      const part = result[gradientName(name)] as Tensor | undefined;
      parts.set(name, await this.transfer.upload(part ?? float32(new Float32Array(elements(dims)), dims)));
    }
    if (this.gradient.size === 0) {
      this.gradient = parts;
      return;
    }
    for (const group of this.groups()) {
      const session = await this.session('sum', group, sumGraph);
      const summed = await session.run(feedsOf(group, { a: this.gradient, b: parts }));
      replaceAll(this.gradient, group, summed, 'sum');
    }
    dispose(parts.values());
  }

  async step(options: OptimizerOptions): Promise<{ norm: number; applied: boolean }> {
    if (this.gradient.size === 0) throw new Error('parameters: no gradient was computed yet');
    const norms = await this.session('norm', this.specs, normGraph);
    const norm = (await norms.run(feedsOf(this.specs, { g: this.gradient }))).norm.data[0] as number;
    if (!Number.isFinite(norm)) return { norm, applied: false };
    await this.makeMoments();
    this.changes++;
    const shrink = Math.min(1, options.grad_clip / (norm + 1e-6));
    for (const group of this.groups()) {
      const session = await this.session('step', group, stepGraph);
      const next = await session.run({
        ...feedsOf(group, { p: this.parameters, g: this.gradient, m: this.m, v: this.v }),
        shrink: float32(Float32Array.of(shrink), []),
        ...coefficientFeeds(options, this.taken + 1),
      });
      replaceAll(this.parameters, group, next, 'p');
      replaceAll(this.m, group, next, 'm');
      replaceAll(this.v, group, next, 'v');
    }
    this.taken++;
    return { norm, applied: true };
  }

  read(): Promise<Weights> {
    return this.toHost(this.parameters);
  }

  async readGradient(): Promise<Weights> {
    if (this.gradient.size === 0) throw new Error('parameters: no gradient was computed yet');
    return this.toHost(this.gradient);
  }

  write(weights: Weights): Promise<void> {
    this.changes++;
    return this.toDevice(this.parameters, weights);
  }

  async moments(): Promise<MomentState> {
    await this.makeMoments();
    const [m, v] = [await this.toHost(this.m), await this.toHost(this.v)];
    return { format: 'float32', m: m.flat, v: v.flat, step: this.taken };
  }

  async restoreMoments(saved: MomentState): Promise<void> {
    const [m, v] = [new Weights(this.specs), new Weights(this.specs)];
    const state: MomentState = { format: 'float32', m: m.flat, v: v.flat, step: 0 };
    copyMoments(state, saved);
    await this.toDevice(this.m, m);
    await this.toDevice(this.v, v);
    this.taken = state.step;
  }

  /** Frees all tensors; the bank must not be used afterwards. */
  async release(): Promise<void> {
    for (const tensors of [this.parameters, this.gradient, this.m, this.v]) dispose(tensors.values());
    await this.transfer.release();
    for (const session of this.sessions.values()) await (await session).release();
  }

  /** Creates the moments on the first step, because a policy used only for rollouts needs none. */
  private async makeMoments(): Promise<void> {
    if (this.m.size > 0) return;
    const zeros = new Weights(this.specs);
    await this.toDevice(this.m, zeros);
    await this.toDevice(this.v, zeros);
  }

  private async toDevice(target: Tensors, weights: Weights): Promise<void> {
    const feeds = weights.feeds();
    for (const { name } of this.specs) replace(target, name, await this.transfer.upload(feeds[name]));
  }

  private async toHost(tensors: Tensors): Promise<Weights> {
    const weights = new Weights(this.specs);
    for (const { name } of this.specs) {
      const { data } = await this.transfer.download(tensors.get(name)!);
      weights.view(name).set(data as Float32Array);
    }
    return weights;
  }

  /** Returns the parameters in groups of at most `groupBytes`. */
  private groups(): ParameterSpec[][] {
    const groups: ParameterSpec[][] = [];
    let bytes = Infinity;
    for (const spec of this.specs) {
      const own = 4 * elements(spec.dims);
      if (bytes + own > groupBytes) {
        groups.push([]);
        bytes = 0;
      }
      groups.at(-1)!.push(spec);
      bytes += own;
    }
    return groups;
  }

  private session(
    kind: string,
    group: readonly ParameterSpec[],
    build: (shapes: (readonly number[])[], lowering: Graph['lowering']) => Graph,
  ): Promise<Session> {
    const key = `${kind} ${group[0].name}`;
    let session = this.sessions.get(key);
    if (!session) {
      const shapes = group.map(({ dims }) => dims);
      const resident = (output: string): boolean => output !== 'norm';
      session = Session.create(build(shapes, loweringOf(this.options)), { ...this.options, resident });
      this.sessions.set(key, session);
    }
    return session;
  }
}

/** Builds the graph of the sums `sum0` = `a0` + `b0`, `sum1` = `a1` + `b1`, …. */
function sumGraph(shapes: readonly (readonly number[])[], lowering: Graph['lowering']): Graph {
  const g = new Graph('sum of gradients', lowering);
  shapes.forEach((dims, i) => {
    const [a, b] = ['a', 'b'].map(name => g.input(`${name}${i}`, 'float32', dims));
    g.output(`sum${i}`, binary(g, 'Add', a, b));
  });
  return g;
}

/**
 * Returns the graph inputs for a group of parameters. The input `${stem}${i}` is the tensor of the group's i-th
 * parameter.
 */
function feedsOf(group: readonly ParameterSpec[], stems: Record<string, Tensors>): Record<string, Tensor> {
  const entries = Object.entries(stems).flatMap(([stem, tensors]) =>
    group.map(({ name }, i) => [`${stem}${i}`, tensors.get(name)!] as const),
  );
  return Object.fromEntries(entries);
}

/** Replaces the tensors of a group by the outputs `${stem}${i}`, and disposes of the old tensors. */
function replaceAll(
  tensors: Tensors,
  group: readonly ParameterSpec[],
  outputs: Readonly<Record<string, Tensor>>,
  stem: string,
): void {
  group.forEach(({ name }, i) => replace(tensors, name, outputs[`${stem}${i}`]));
}

function replace(tensors: Tensors, name: string, tensor: Tensor): void {
  const old = tensors.get(name);
  if (old) dispose([old]);
  tensors.set(name, tensor);
}
