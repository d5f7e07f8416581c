// AdamW with global-norm gradient clipping, computed by graphs (Loshchilov & Hutter 2019). The order of the update is
// that of PyTorch: decoupled decay, then the step with bias-corrected moments. One graph computes the norm, and other
// graphs apply the step. On the host, the flat parameter vector is updated in chunks, so that only one chunk needs
// extra memory; moments may be 8-bit (byte-moments.ts). On a device, the step runs tensor by tensor. If the norm is not
// finite, no parameter changes and the result has `applied: false`.
import { blockSize, ditherFeeds, firstFromBytes, firstToBytes, secondFromBytes, secondToBytes } from './byte-moments';
import type { MomentFormat } from '../load-options';
import type { MomentState } from '../engine';
import type { OptimizerOptions } from '../loss-options';
import { Graph } from '../graph/graph';
import type { Lowering, Value } from '../graph/graph';
import { binary, unary } from '../graph/ops';
import { Session, float32 } from '../session/session';
import type { SessionOptions, Tensor } from '../session/session';

/**
 * Number of parameters per chunk; a multiple of the block size. The CPU cache can hold all data that a step needs for
 * one chunk.
 */
export const chunkSize = 2 ** 17;

export class AdamW {
  private constructor(
    readonly state: MomentState,
    private readonly squares: Session,
    private readonly update: Session,
  ) {}

  /** Creates the optimizer for `size` parameters, at step 0. */
  static async create(size: number, options: SessionOptions, format: MomentFormat = 'float32'): Promise<AdamW> {
    const graph = format === 'int8' ? byteGraph() : floatGraph();
    return new AdamW(
      emptyMoments(size, format),
      await Session.create(squaresGraph(), options),
      await Session.create(graph, options),
    );
  }

  /** Updates `parameters` in place; returns the norm before clipping and whether the step was applied. */
  async step(
    parameters: Float32Array,
    gradient: Float32Array,
    options: OptimizerOptions,
  ): Promise<{ norm: number; applied: boolean }> {
    const { state } = this;
    const norm = await this.norm(gradient);
    if (!Number.isFinite(norm)) return { norm, applied: false };
    const t = state.step + 1;
    const shared = {
      shrink: float32(Float32Array.of(Math.min(1, options.grad_clip / (norm + 1e-6))), []),
      ...coefficientFeeds(options, t),
      ...(state.format === 'int8' && ditherFeeds(t)),
    };
    for (let from = 0; from < state.m.length; from += chunkSize) {
      const to = Math.min(from + chunkSize, state.m.length);
      const moments = chunkOf(state, from, to);
      const { dims } = moments.m;
      const next = await this.update.run({
        p: float32(padded(parameters, from, to), dims),
        g: float32(padded(gradient, from, to), dims),
        ...moments,
        ...shared,
      });
      parameters.set((next.p_next.data as Float32Array).subarray(0, parameters.length - from), from);
      for (const [name, { data }] of Object.entries(moments)) data.set(next[`${name}_next`].data as Float32Array);
    }
    state.step = t;
    return { norm, applied: true };
  }

  private async norm(gradient: Float32Array): Promise<number> {
    let sum = 0;
    for (let from = 0; from < gradient.length; from += chunkSize) {
      const part = gradient.subarray(from, from + chunkSize);
      sum += (await this.squares.run({ g: float32(part, [part.length]) })).sum.data[0] as number;
    }
    return Math.sqrt(sum);
  }
}

/** Returns the moments before the first step. 8-bit moments are padded to whole blocks. */
function emptyMoments(size: number, format: MomentFormat): MomentState {
  if (format === 'float32') return { format, step: 0, m: new Float32Array(size), v: new Float32Array(size) };
  const blocks = Math.ceil(size / blockSize);
  const length = blocks * blockSize;
  const scale = (): Float32Array => new Float32Array(blocks);
  return { format, step: 0, m: new Int8Array(length), v: new Uint8Array(length), mScale: scale(), vScale: scale() };
}

/** A tensor that is a writable view of some of the moments; it can be fed to a session. */
interface Part extends Tensor {
  readonly data: Float32Array | Int8Array | Uint8Array;
}

function chunkOf(state: MomentState, from: number, to: number): Record<'m' | 'v', Part> {
  if (state.format === 'float32') {
    const part = (all: Float32Array): Part => ({ type: 'float32', dims: [to - from], data: all.subarray(from, to) });
    return { m: part(state.m), v: part(state.v) };
  }
  const [first, end] = [from / blockSize, to / blockSize];
  const dims = [end - first, blockSize];
  const scale = (all: Float32Array): Part => ({ type: 'float32', dims: [dims[0], 1], data: all.subarray(first, end) });
  const bytes: Record<'m' | 'v' | 'mScale' | 'vScale', Part> = {
    m: { type: 'int8', dims, data: state.m.subarray(from, to) },
    v: { type: 'uint8', dims, data: state.v.subarray(from, to) },
    mScale: scale(state.mScale),
    vScale: scale(state.vScale),
  };
  return bytes;
}

/** Returns the numbers in [from, to). If the array ends before `to`, returns a copy padded with zeros. */
function padded(numbers: Float32Array, from: number, to: number): Float32Array {
  if (to <= numbers.length) return numbers.subarray(from, to);
  const copy = new Float32Array(to - from);
  copy.set(numbers.subarray(from));
  return copy;
}

/** Graph that computes the sum of the squares of `g` [n]. Output: `sum`. */
function squaresGraph(): Graph {
  const g = new Graph('squares');
  g.output('sum', g.emit('ReduceSumSquare', [g.input('g', 'float32', ['n'])], 'float32', [], { keepdims: 0 }));
  return g;
}

/**
 * Graph that computes the optimizer step for one chunk. Inputs: `p`, `g`, `m`, `v` [n], the gradient factor `shrink`,
 * and the feeds of `coefficientFeeds`. Outputs: `p_next`, `m_next`, `v_next`.
 */
function floatGraph(): Graph {
  const g = new Graph('adamw');
  const [p, gradient, m, v] = ['p', 'g', 'm', 'v'].map(name => g.input(name, 'float32', ['n']));
  const next = adamStep(g, { p, gradient, m, v }, g.input('shrink', 'float32', []), coefficients(g));
  for (const name of ['p', 'm', 'v'] as const) g.output(`${name}_next`, next[name]);
  return g;
}

/**
 * Graph that computes the optimizer step for blocks [b, 256] with 8-bit moments; the scales of the blocks are [b, 1].
 * Inputs in addition to those of `floatGraph`: `first_dither`, `second_dither`.
 */
function byteGraph(): Graph {
  const g = new Graph('adamw over bytes');
  const dims = ['b', blockSize];
  const [p, gradient] = ['p', 'g'].map(name => g.input(name, 'float32', dims));
  const scale = (name: string): Value => g.input(name, 'float32', ['b', 1]);
  const m = firstFromBytes(g, { bytes: g.input('m', 'int8', dims), scale: scale('mScale') });
  const v = secondFromBytes(g, { bytes: g.input('v', 'uint8', dims), scale: scale('vScale') });
  const next = adamStep(g, { p, gradient, m, v }, g.input('shrink', 'float32', []), coefficients(g));
  const dither = (name: string): Value => g.input(name, 'float32', [1, blockSize]);
  const first = firstToBytes(g, next.m, dither('first_dither'));
  const second = secondToBytes(g, next.v, dither('second_dither'));
  g.output('p_next', next.p);
  g.output('m_next', first.bytes);
  g.output('mScale_next', first.scale);
  g.output('v_next', second.bytes);
  g.output('vScale_next', second.scale);
  return g;
}

/** Graph that computes the global norm of the gradients `g0`, `g1`, …, which have the given shapes. Output: `norm`. */
export function normGraph(shapes: readonly (readonly number[])[], lowering: Lowering): Graph {
  const g = new Graph('gradient norm', lowering);
  const squares = shapes.map((dims, i) => {
    const rows = g.emit(
      'ReduceSumSquare',
      [g.input(`g${i}`, 'float32', dims), g.integers([dims.length - 1])],
      'float32',
      dims.slice(0, -1),
      { keepdims: 0 },
    );
    return g.emit('ReduceSum', [rows], 'float32', [], { keepdims: 0 });
  });
  g.output(
    'norm',
    unary(
      g,
      'Sqrt',
      squares.reduce((sum, square) => binary(g, 'Add', sum, square)),
    ),
  );
  return g;
}

/**
 * Graph that computes the optimizer step for tensors of the given shapes. Inputs: `p0`, `g0`, `m0`, `v0`, `p1`, …, the
 * gradient factor `shrink` and the feeds of `coefficientFeeds`. Outputs: `p0`, `m0`, `v0`, `p1`, ….
 */
export function stepGraph(shapes: readonly (readonly number[])[], lowering: Lowering): Graph {
  const g = new Graph('adamw step', lowering);
  const shrink = g.input('shrink', 'float32', []);
  const shared = coefficients(g);
  shapes.forEach((dims, i) => {
    const [p, gradient, m, v] = ['p', 'g', 'm', 'v'].map(name => g.input(`${name}${i}`, 'float32', dims));
    const next = adamStep(g, { p, gradient, m, v }, shrink, shared);
    for (const name of ['p', 'm', 'v'] as const) g.output(`${name}${i}`, next[name]);
  });
  return g;
}

const coefficientNames = [
  'lr',
  'keep',
  'beta1',
  'beta2',
  'rest1',
  'rest2',
  'correction1',
  'root_correction2',
  'eps',
] as const;
type Coefficients = Record<(typeof coefficientNames)[number], Value>;

function coefficients(g: Graph): Coefficients {
  return Object.fromEntries(coefficientNames.map(name => [name, g.input(name, 'float32', [])])) as Coefficients;
}

/** Returns the scalar feeds of AdamW step `t`, counted from 1. */
export function coefficientFeeds(
  { lr, betas, eps, weight_decay }: OptimizerOptions,
  t: number,
): Record<string, Tensor> {
  const numbers: Record<(typeof coefficientNames)[number], number> = {
    lr,
    keep: 1 - lr * weight_decay,
    beta1: betas[0],
    beta2: betas[1],
    rest1: 1 - betas[0],
    rest2: 1 - betas[1],
    correction1: 1 - betas[0] ** t,
    root_correction2: Math.sqrt(1 - betas[1] ** t),
    eps,
  };
  return Object.fromEntries(Object.entries(numbers).map(([name, x]) => [name, float32(Float32Array.of(x), [])]));
}

function adamStep(
  g: Graph,
  { p, gradient, m, v }: Record<'p' | 'gradient' | 'm' | 'v', Value>,
  shrink: Value,
  c: Coefficients,
): Record<'p' | 'm' | 'v', Value> {
  const mul = (a: Value, b: Value): Value => binary(g, 'Mul', a, b);
  const clipped = mul(gradient, shrink);
  const mNext = binary(g, 'Add', mul(m, c.beta1), mul(clipped, c.rest1));
  const vNext = binary(g, 'Add', mul(v, c.beta2), mul(mul(clipped, clipped), c.rest2));
  const denominator = binary(g, 'Add', binary(g, 'Div', unary(g, 'Sqrt', vNext), c.root_correction2), c.eps);
  const stepSize = binary(g, 'Div', c.lr, c.correction1);
  const pNext = binary(g, 'Sub', mul(p, c.keep), mul(binary(g, 'Div', mNext, denominator), stepSize));
  return { p: pNext, m: mNext, v: vNext };
}
