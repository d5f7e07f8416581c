// Operations of vision encoders with their pullbacks: LayerNorm, both forms of GELU, and splits into columns. Results
// match PyTorch's modules; gradients are tested against finite differences. LayerNorm computes in float32.
import { contrib } from './graph';
import type { Graph, Value } from './graph';
import { binary, converted, reduced, sumTo, unary } from './ops';
import { expectDims, expectFloat, showDims } from './shapes';

/** (x − mean) / sqrt(variance + eps) · w + b over the last axis of x; w and b have the length of this axis. */
export function layerNorm(g: Graph, x: Value, weight: Value, bias: Value, eps: number): Value {
  for (const vector of [weight, bias]) expectDims('layerNorm', vector, x.dims.slice(-1));
  const [type, weightType] = [expectFloat('layerNorm', x), expectFloat('layerNorm', weight)];
  const [x32, weight32, bias32] = [x, weight, bias].map(value => converted(g, value, 'float32'));
  const mean = (v: Value): Value => reduced(g, 'ReduceMean', v, [x.dims.length - 1]);
  const y = g.emit('LayerNormalization', [x32, weight32, bias32], 'float32', x.dims, {
    axis: -1,
    epsilon: { float: eps },
  });
  const out = converted(g, y, type);
  g.record([x, weight, bias], [out], ([dOut]) => {
    if (!dOut) return [null, null, null];
    const dy = converted(g, dOut, 'float32');
    const centered = binary(g, 'Sub', x32, mean(x32));
    const variance = binary(g, 'Add', mean(binary(g, 'Mul', centered, centered)), g.scalar(eps));
    const root = unary(g, 'Reciprocal', unary(g, 'Sqrt', variance));
    const unit = binary(g, 'Mul', centered, root);
    const scaled = binary(g, 'Mul', dy, weight32);
    const along = binary(g, 'Mul', unit, mean(binary(g, 'Mul', scaled, unit)));
    const dx = binary(g, 'Mul', root, binary(g, 'Sub', binary(g, 'Sub', scaled, mean(scaled)), along));
    const dw = sumTo(g, binary(g, 'Mul', dy, unit), weight.dims);
    return [dx, dw, sumTo(g, dy, bias.dims)].map((gradient, i) => converted(g, gradient, i === 0 ? type : weightType));
  });
  return out;
}

/** x · Φ(x), where Φ is the normal distribution function. */
export function gelu(g: Graph, x: Value): Value {
  const constant = scalarsLike(g, x);
  const erf = unary(g, 'Erf', binary(g, 'Mul', x, constant(Math.SQRT1_2)));
  const phi = binary(g, 'Mul', binary(g, 'Add', erf, constant(1)), constant(0.5));
  const y = binary(g, 'Mul', x, phi);
  g.record([x], [y], ([dy]) => {
    if (!dy) return [null];
    const density = unary(g, 'Exp', binary(g, 'Mul', binary(g, 'Mul', x, x), constant(-0.5)));
    const slope = binary(g, 'Mul', binary(g, 'Mul', x, density), constant(1 / Math.sqrt(2 * Math.PI)));
    return [binary(g, 'Mul', dy, binary(g, 'Add', phi, slope))];
  });
  return y;
}

/**
 * The approximation ½ · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))) of `gelu`. Fused kernels compute it in one operation,
 * and its intermediate values again in the backward pass.
 */
export function geluTanh(g: Graph, x: Value): Value {
  const constant = scalarsLike(g, x);
  const times = (v: Value, c: number): Value => binary(g, 'Mul', v, constant(c));
  const [root, cubic] = [Math.sqrt(2 / Math.PI), 0.044715];
  const parts = (): { square: Value; tanh: Value; phi: Value } => {
    const square = binary(g, 'Mul', x, x);
    const inner = times(binary(g, 'Mul', x, binary(g, 'Add', times(square, cubic), constant(1))), root);
    const tanh = unary(g, 'Tanh', inner);
    return { square, tanh, phi: times(binary(g, 'Add', tanh, constant(1)), 0.5) };
  };
  const kept = g.hasFusedKernels ? undefined : parts();
  const y = kept ? binary(g, 'Mul', x, kept.phi) : g.emit('FastGelu', [x], x.type, x.dims, {}, contrib);
  g.record([x], [y], ([dy]) => {
    if (!dy) return [null];
    const { square, tanh, phi } = kept ?? parts();
    const rise = times(binary(g, 'Add', times(square, 3 * cubic), constant(1)), root / 2);
    const slope = binary(g, 'Mul', rise, binary(g, 'Sub', constant(1), binary(g, 'Mul', tanh, tanh)));
    return [binary(g, 'Mul', dy, binary(g, 'Add', phi, binary(g, 'Mul', x, slope)))];
  });
  return y;
}

/** Splits x along its last axis into `count` parts of equal width. */
export function splitColumns(g: Graph, x: Value, count: number): Value[] {
  const last = Number(x.dims.at(-1));
  if (last % count !== 0) throw new Error(`graph: cannot split ${showDims(x.dims)} into ${count} equal parts`);
  const axis = x.dims.length - 1;
  const part = { type: x.type, dims: [...x.dims.slice(0, -1), last / count] };
  const sizes = g.integers(Array<number>(count).fill(last / count));
  const parts = g.emitMany('Split', [x, sizes], Array<typeof part>(count).fill(part), { axis });
  g.record([x], parts, gradients => {
    if (gradients.some(dy => dy === null)) throw new Error('graph: splitColumns needs the gradient of every part');
    return [g.emit('Concat', gradients, x.type, x.dims, { axis })];
  });
  return parts;
}

const scalarsLike =
  (g: Graph, x: Value) =>
  (c: number): Value =>
    g.scalar(c, expectFloat('scalar', x));
