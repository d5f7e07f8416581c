// AdamW with clipping by the global norm, as one graph over the flat vector of all parameters (Loshchilov & Hutter 2019; the update
// order is PyTorch's: decoupled decay first, then the step with bias-corrected moments).
// A gradient whose norm is not finite changes nothing and is reported.
import type { OptimizerOptions } from './engine';
import { Graph } from './graph';
import type { Value } from './graph';
import { binary, unary } from './ops';
import { Session, float32 } from './session';
import type { SessionOptions } from './session';

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
    { lr, betas, eps, weight_decay, grad_clip }: OptimizerOptions,
  ): Promise<{ norm: number; applied: boolean }> {
    const { state } = this;
    const t = state.step + 1;
    const scalar = (x: number) => float32(new Float32Array([x]), []);
    const vector = (data: Float32Array) => float32(data, [data.length]);
    const result = await this.session.run({
      p: vector(parameters),
      g: vector(gradient),
      m: vector(state.m),
      v: vector(state.v),
      lr: scalar(lr),
      keep: scalar(1 - lr * weight_decay),
      beta1: scalar(betas[0]),
      beta2: scalar(betas[1]),
      rest1: scalar(1 - betas[0]),
      rest2: scalar(1 - betas[1]),
      correction1: scalar(1 - betas[0] ** t),
      root_correction2: scalar(Math.sqrt(1 - betas[1] ** t)),
      eps: scalar(eps),
      max_norm: scalar(grad_clip),
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
  const [p, grad, m, v] = ['p', 'g', 'm', 'v'].map(name => g.input(name, 'float32', [size]));
  const scalar = (name: string): Value => g.input(name, 'float32', []);
  const mul = (a: Value, b: Value): Value => binary(g, 'Mul', a, b);
  const norm = unary(g, 'Sqrt', g.emit('ReduceSumSquare', [grad], 'float32', [], { keepdims: 0 }));
  const shrink = binary(
    g,
    'Min',
    g.scalar(1),
    binary(g, 'Div', scalar('max_norm'), binary(g, 'Add', norm, g.scalar(1e-6))),
  );
  const clipped = mul(grad, shrink);
  const mNext = binary(g, 'Add', mul(m, scalar('beta1')), mul(clipped, scalar('rest1')));
  const vNext = binary(g, 'Add', mul(v, scalar('beta2')), mul(mul(clipped, clipped), scalar('rest2')));
  const denominator = binary(
    g,
    'Add',
    binary(g, 'Div', unary(g, 'Sqrt', vNext), scalar('root_correction2')),
    scalar('eps'),
  );
  const stepSize = binary(g, 'Div', scalar('lr'), scalar('correction1'));
  const pNext = binary(g, 'Sub', mul(p, scalar('keep')), mul(binary(g, 'Div', mNext, denominator), stepSize));
  g.output('norm', norm);
  g.output('p_next', pNext);
  g.output('m_next', mNext);
  g.output('v_next', vNext);
  return g;
}
