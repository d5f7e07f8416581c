// AdamW with clipping by the global norm (Loshchilov & Hutter 2019; the update order is PyTorch's: decoupled decay first, then the step
// with bias-corrected moments), as graphs: over the flat vector of all parameters on the host, where one graph does it all, and over
// tensors on a device, where a first graph finds the norm and others make the step.
// A gradient whose norm is not finite changes nothing and is reported.
import type { OptimizerOptions } from './engine';
import { Graph } from './graph';
import type { Lowering, Value } from './graph';
import { binary, unary } from './ops';
import { Session, float32 } from './session';
import type { SessionOptions, Tensor } from './session';

export interface AdamState {
  step: number;
  /** First and second moments, as long as the flat parameters. */
  m: Float32Array;
  v: Float32Array;
}

export class AdamW {
  private constructor(
    private readonly session: Session,
    readonly state: AdamState,
  ) {}

  static async create(size: number, options: SessionOptions): Promise<AdamW> {
    const session = await Session.create(adamGraph(size), options);
    return new AdamW(session, { step: 0, m: new Float32Array(size), v: new Float32Array(size) });
  }

  /** Updates `parameters` in place; returns the norm before clipping and whether the step was taken. */
  async step(
    parameters: Float32Array,
    gradient: Float32Array,
    options: OptimizerOptions,
  ): Promise<{ norm: number; applied: boolean }> {
    const { state } = this;
    const t = state.step + 1;
    const vector = (data: Float32Array): Tensor => float32(data, [data.length]);
    const result = await this.session.run({
      p: vector(parameters),
      g: vector(gradient),
      m: vector(state.m),
      v: vector(state.v),
      max_norm: float32(Float32Array.of(options.grad_clip), []),
      ...coefficientFeeds(options, t),
    });
    const norm = (result.norm.data as Float32Array)[0];
    if (!Number.isFinite(norm)) return { norm, applied: false };
    parameters.set(result.p_next.data as Float32Array);
    state.m.set(result.m_next.data as Float32Array);
    state.v.set(result.v_next.data as Float32Array);
    state.step = t;
    return { norm, applied: true };
  }
}

function adamGraph(size: number): Graph {
  const g = new Graph('adamw');
  const [p, gradient, m, v] = ['p', 'g', 'm', 'v'].map(name => g.input(name, 'float32', [size]));
  const norm = unary(g, 'Sqrt', g.emit('ReduceSumSquare', [gradient], 'float32', [], { keepdims: 0 }));
  const ratio = binary(g, 'Div', g.input('max_norm', 'float32', []), binary(g, 'Add', norm, g.scalar(1e-6)));
  const shrink = binary(g, 'Min', g.scalar(1), ratio);
  const next = adamStep(g, { p, gradient, m, v }, shrink, coefficients(g));
  g.output('norm', norm);
  g.output('p_next', next.p);
  g.output('m_next', next.m);
  g.output('v_next', next.v);
  return g;
}

/** The norm of all gradients together, `g0`, `g1`, …, each of the given shape. Output: `norm`. */
export function normGraph(shapes: readonly (readonly number[])[], lowering: Lowering): Graph {
  const g = new Graph('gradient norm', lowering);
  const squares = shapes.map((dims, i) => {
    const rows = g.emit('ReduceSumSquare', [g.input(`g${i}`, 'float32', dims), g.integers([dims.length - 1])], 'float32', dims.slice(0, -1), { keepdims: 0 }); // prettier-ignore
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
 * The step of tensors of the given shapes: inputs `p0`, `g0`, `m0`, `v0`, `p1`, …, the factor `shrink` on all gradients and what
 * `coefficientFeeds` gives. Outputs: `p0`, `m0`, `v0`, `p1`, ….
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

const coefficientNames = ['lr', 'keep', 'beta1', 'beta2', 'rest1', 'rest2', 'correction1', 'root_correction2', 'eps'] as const; // prettier-ignore
type Coefficients = Record<(typeof coefficientNames)[number], Value>;

function coefficients(g: Graph): Coefficients {
  return Object.fromEntries(coefficientNames.map(name => [name, g.input(name, 'float32', [])])) as Coefficients;
}

/** What step number `t` (from 1) of AdamW is fed besides tensors. */
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
