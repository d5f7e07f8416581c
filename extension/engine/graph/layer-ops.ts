// Operations of the decoder with their pullbacks: matmuls, softmax, RMSNorm, SwiGLU, rotary positions, and log-probs
// and entropies of target tokens. Each operation records one hand-written pullback, which keeps the backward graph
// short. Results match Hugging Face's Qwen2/Llama modules; gradients are tested against finite differences and PyTorch.
// Matmuls are computed in the type of their operands, float32 or float16; softmax, norms and log-probs are always
// computed in float32.
import { contrib } from './graph';
import type { Dim, Graph, Value } from './graph';
import { binary, converted, reduced, sumTo, unary } from './ops';
import { broadcast, expectDim, expectDims, expectFloat, expectType, showDims } from './shapes';

/** Hugging Face linear layer: x [n, in] · W [out, in]ᵀ (+ b [out] or [n, out]) → [n, out]. */
export function linear(g: Graph, x: Value, weight: Value, bias: Value | null = null): Value {
  expectMatrix('linear', x, 2);
  expectMatrix('linear', weight, 2);
  expectDim('linear', x.dims[1], weight.dims[1]);
  if (bias) expectDims('linear', bias, bias.dims.length === 1 ? [weight.dims[0]] : [x.dims[0], weight.dims[0]]);
  const inputs = bias ? [x, weight, bias] : [x, weight];
  for (const value of inputs) expectType('linear', value, x.type);
  const y = g.emit('Gemm', inputs, x.type, [x.dims[0], weight.dims[0]], { transB: 1 });
  g.record(inputs, [y], ([dy]) => {
    if (!dy) return [];
    const dx = g.emit('Gemm', [dy, weight], x.type, x.dims);
    const dw = g.emit('Gemm', [dy, x], x.type, weight.dims, { transA: 1 });
    return bias ? [dx, dw, sumTo(g, dy, bias.dims)] : [dx, dw];
  });
  return y;
}

interface MatmulOptions {
  transA?: boolean;
  transB?: boolean;
  /** Factor of the product; 1 by default. */
  alpha?: number;
}

/** Batched matmul over the last two axes, with optional transposes: alpha · op(a) · op(b). */
export function matmul(g: Graph, a: Value, b: Value, options: MatmulOptions = {}): Value {
  const y = product(g, a, b, options);
  const { transA = false, transB = false, alpha = 1 } = options;
  g.record([a, b], [y], ([dy]) => {
    if (!dy) return [null, null];
    const da = transA
      ? product(g, b, dy, { transA: transB, transB: true, alpha })
      : product(g, dy, b, { transB: !transB, alpha });
    const db = transB
      ? product(g, dy, a, { transA: true, transB: transA, alpha })
      : product(g, a, dy, { transA: !transA, alpha });
    return [sumTo(g, da, a.dims), sumTo(g, db, b.dims)];
  });
  return y;
}

/** Softmax over the last axis. */
export function softmax(g: Graph, x: Value): Value {
  const type = expectFloat('softmax', x);
  const last = x.dims.length - 1;
  const y = g.emit('Softmax', [converted(g, x, 'float32')], 'float32', x.dims, { axis: last });
  const out = converted(g, y, type);
  g.record([x], [out], ([dOut]) => {
    if (!dOut) return [null];
    const dy = converted(g, dOut, 'float32');
    const dot = sumLast(g, binary(g, 'Mul', dy, y));
    return [converted(g, binary(g, 'Mul', y, binary(g, 'Sub', dy, dot)), type)];
  });
  return out;
}

/**
 * Multiplies the softmax of `scores` [.., t, s] over the last axis by `values` [.., s, d]. Softmax and product are one
 * operation because the softmax pullback only needs Σ_s dp·p. This sum equals Σ_d dy·y, which has d terms instead of s
 * (FlashAttention-2, arXiv 2307.08691, §3.1).
 */
export function softmaxProduct(g: Graph, scores: Value, values: Value): Value {
  const type = expectFloat('softmaxProduct', scores);
  const last = scores.dims.length - 1;
  const weights = g.emit('Softmax', [converted(g, scores, 'float32')], 'float32', scores.dims, { axis: last });
  const p = converted(g, weights, type);
  const y = product(g, p, values, {});
  expectDims('softmaxProduct', y, [...scores.dims.slice(0, -1), values.dims.at(-1)!]);
  g.record([scores, values], [y], ([dy]) => {
    if (!dy) return [null, null];
    const dp = converted(g, product(g, dy, values, { transB: true }), 'float32');
    const dot = sumLast(g, binary(g, 'Mul', converted(g, dy, 'float32'), converted(g, y, 'float32')));
    const ds = binary(g, 'Mul', weights, binary(g, 'Sub', dp, dot));
    const dv = product(g, p, dy, { transA: true });
    return [converted(g, ds, type), sumTo(g, dv, values.dims)];
  });
  return y;
}

/** x / sqrt(mean(x²) + eps) · w over the last axis of x; w has the length of this axis. */
export function rmsNorm(g: Graph, x: Value, weight: Value, eps: number): Value {
  expectDims('rmsNorm', weight, x.dims.slice(-1));
  const [type, weightType] = [expectFloat('rmsNorm', x), expectFloat('rmsNorm', weight)];
  const [x32, weight32] = [converted(g, x, 'float32'), converted(g, weight, 'float32')];
  const { y, inverse } = normalized(g, x32, weight32, eps);
  const out = converted(g, y, type);
  g.record([x, weight], [out], ([dOut]) => {
    if (!dOut) return [null, null];
    const dy = converted(g, dOut, 'float32');
    const root = inverse();
    const unit = binary(g, 'Mul', x32, root);
    const scaled = binary(g, 'Mul', dy, weight32);
    const mean = meanLastOf(g, binary(g, 'Mul', scaled, unit));
    const dx = binary(g, 'Mul', root, binary(g, 'Sub', scaled, binary(g, 'Mul', unit, mean)));
    const dw = sumTo(g, binary(g, 'Mul', dy, unit), weight.dims);
    return [converted(g, dx, type), converted(g, dw, weightType)];
  });
  return out;
}

/**
 * Returns the norm's result `y`, and a function `inverse` that returns 1 / sqrt(mean(x²) + eps). The kernel computes
 * this value as its second output. On WebGPU, the second output is wrong (onnxruntime 1.30), so there `inverse`
 * recomputes the value.
 */
function normalized(g: Graph, x: Value, weight: Value, eps: number): { y: Value; inverse: () => Value } {
  const attributes = { axis: -1, epsilon: { float: eps }, stash_type: 1 };
  const statDims = [...x.dims.slice(0, -1), 1];
  if (g.hasFusedKernels) {
    const outputs = [x.dims, statDims].map(dims => ({ type: 'float32' as const, dims }));
    const [y, inverse] = g.emitMany('SimplifiedLayerNormalization', [x, weight], outputs, attributes);
    return { y, inverse: () => inverse };
  }
  const inverse = (): Value => {
    const square = binary(g, 'Add', meanLastOf(g, binary(g, 'Mul', x, x)), g.scalar(eps));
    return unary(g, 'Reciprocal', unary(g, 'Sqrt', square));
  };
  if (g.lowering === 'onnx') return { y: binary(g, 'Mul', binary(g, 'Mul', x, inverse()), weight), inverse };
  return { y: g.emit('SimplifiedLayerNormalization', [x, weight], 'float32', x.dims, attributes), inverse };
}

/** silu(gate) · up, elementwise. */
export function swiglu(g: Graph, gate: Value, up: Value): Value {
  const sigma = unary(g, 'Sigmoid', gate);
  const silu = binary(g, 'Mul', gate, sigma);
  const y = binary(g, 'Mul', silu, up);
  g.record([gate, up], [y], ([dy]) => {
    if (!dy) return [null, null];
    // d silu/d gate = σ + silu·(1 − σ)
    const slope = binary(g, 'Add', sigma, binary(g, 'Sub', silu, binary(g, 'Mul', silu, sigma)));
    return [binary(g, 'Mul', binary(g, 'Mul', dy, up), slope), binary(g, 'Mul', dy, silu)];
  });
  return y;
}

export interface RotaryTables {
  /** [positions, headSize/2] */
  cos: Value;
  sin: Value;
  /** −sin, used by the pullback, which rotates in the opposite direction. */
  sinNegated: Value;
}

/**
 * Rotates the two halves of each head of x [b, t, heads·headSize] according to the token's position [b, t] (as Hugging
 * Face's rotate_half does).
 */
export function rotary(g: Graph, x: Value, positions: Value, tables: RotaryTables): Value {
  const [b, t, width] = x.dims;
  expectType('rotary', positions, 'int64');
  expectDims('rotary', positions, [b, t]);
  for (const table of [tables.cos, tables.sin, tables.sinNegated]) expectDims('rotary', table, tables.cos.dims);
  if (Number(width) % (2 * Number(tables.cos.dims[1])) !== 0)
    throw new Error(`graph: rotary tables ${showDims(tables.cos.dims)} do not fit heads in ${showDims(x.dims)}`);
  const type = expectFloat('rotary', x);
  const rotate = (v: Value, sin: Value): Value => {
    const inputs = [v, positions, converted(g, tables.cos, type), converted(g, sin, type)] as const;
    if (g.lowering === 'onnx') return plainRotation(g, ...inputs);
    return g.emit('RotaryEmbedding', inputs, type, v.dims, { interleaved: 0 }, contrib);
  };
  const y = rotate(x, tables.sin);
  g.record([x], [y], ([dy]) => [dy && rotate(dy, tables.sinNegated)]);
  return y;
}

/**
 * Computes the rotation with several standard ONNX operators; ONNX has an operator for rotations only from opset 23 on.
 */
function plainRotation(g: Graph, x: Value, positions: Value, cos: Value, sin: Value): Value {
  const [b, t, width] = x.dims;
  const half = Number(cos.dims[1]);
  const shaped = (v: Value, dims: readonly Dim[]): Value =>
    g.emit('Reshape', [v, g.shapeVector(dims, v.dims)], v.type, dims);
  const heads = shaped(x, [b, t, Number(width) / (2 * half), 2 * half]);
  const part = { type: x.type, dims: [...heads.dims.slice(0, 3), half] };
  const [first, second] = g.emitMany('Split', [heads, g.integers([half, half])], [part, part], { axis: 3 });
  const row = (table: Value): Value =>
    shaped(g.emit('Gather', [table, positions], x.type, [b, t, half], { axis: 0 }), [b, t, 1, half]);
  const [c, s] = [row(cos), row(sin)];
  const times = (v: Value, factor: Value): Value => binary(g, 'Mul', v, factor);
  const rotated = [
    binary(g, 'Sub', times(first, c), times(second, s)),
    binary(g, 'Add', times(second, c), times(first, s)),
  ];
  return shaped(g.emit('Concat', rotated, x.type, heads.dims, { axis: 3 }), x.dims);
}

/**
 * Returns the log-prob of `targets` [n] under softmax(logits [n, vocab]) and the entropy of this distribution; both
 * results are [n] in float32. H = lse − Σ p·logit. Pullback: dlogits = dlogp·(1[target] − p) − dH·p·(log p + H).
 */
export function tokenLogProbs(g: Graph, logits: Value, targets: Value): { logprob: Value; entropy: Value } {
  const n = logits.dims[0];
  expectMatrix('tokenLogProbs', logits, 2);
  const type = expectFloat('tokenLogProbs', logits);
  expectType('tokenLogProbs', targets, 'int64');
  expectDims('tokenLogProbs', targets, [n]);
  const column: Dim[] = [n, 1];
  const logp = logSoftmax(g, converted(g, logits, 'float32'));
  const p = unary(g, 'Exp', logp);
  const at = g.emit('Unsqueeze', [targets, g.integers([1])], 'int64', column);
  const chosen = g.emit('GatherElements', [logp, at], 'float32', column, { axis: 1 });
  const minusH = sumLast(g, binary(g, 'Mul', p, logp));
  const logprob = g.emit('Squeeze', [chosen, g.integers([1])], 'float32', [n]);
  const entropy = unary(g, 'Neg', g.emit('Squeeze', [minusH, g.integers([1])], 'float32', [n]));
  g.record([logits], [logprob, entropy], ([dLogprob, dEntropy]) => {
    const asColumn = (v: Value): Value => g.emit('Unsqueeze', [v, g.integers([1])], 'float32', column);
    let pull: Value | null = null; // coefficient of −p
    if (dLogprob) pull = asColumn(dLogprob);
    if (dEntropy) {
      const term = binary(g, 'Mul', asColumn(dEntropy), binary(g, 'Sub', logp, minusH));
      pull = pull ? binary(g, 'Add', term, pull) : term;
    }
    if (!pull) return [null];
    const spread = unary(g, 'Neg', binary(g, 'Mul', p, pull));
    if (!dLogprob) return [converted(g, spread, type)];
    const scattered = g.emit('ScatterElements', [spread, at, asColumn(dLogprob)], 'float32', logits.dims, {
      axis: 1,
      reduction: 'add',
    });
    return [converted(g, scattered, type)];
  });
  return { logprob, entropy };
}

/** Returns the sum of the squared probabilities of each row of logits [n, vocab], as float32 [n]; without gradient. */
export function squaredProbs(g: Graph, logits: Value): Value {
  expectMatrix('squaredProbs', logits, 2);
  const p = unary(g, 'Exp', logSoftmax(g, converted(g, logits, 'float32')));
  return g.emit('Squeeze', [sumLast(g, binary(g, 'Mul', p, p)), g.integers([1])], 'float32', [logits.dims[0]]);
}

/**
 * x − log Σ exp x over the second axis of a float32 matrix. WebGPU has no LogSoftmax kernel, and its ReduceLogSumExp
 * overflows (onnxruntime 1.30).
 */
function logSoftmax(g: Graph, x: Value): Value {
  if (g.hasFusedKernels) return g.emit('LogSoftmax', [x], 'float32', x.dims, { axis: 1 });
  const shifted = binary(g, 'Sub', x, reduced(g, 'ReduceMax', x, [1]));
  return binary(g, 'Sub', shifted, unary(g, 'Log', sumLast(g, unary(g, 'Exp', shifted))));
}

function product(g: Graph, a: Value, b: Value, { transA = false, transB = false, alpha = 1 }: MatmulOptions): Value {
  expectMatrix('matmul', a);
  expectMatrix('matmul', b);
  expectType('matmul', b, a.type);
  const [m, k] = transA ? [a.dims.at(-1)!, a.dims.at(-2)!] : [a.dims.at(-2)!, a.dims.at(-1)!];
  const [k2, n] = transB ? [b.dims.at(-1)!, b.dims.at(-2)!] : [b.dims.at(-2)!, b.dims.at(-1)!];
  expectDim('matmul', k, k2);
  const dims = [...broadcast(a.dims.slice(0, -2), b.dims.slice(0, -2)), m, n];
  if (!transA && !transB && alpha === 1) return g.emit('MatMul', [a, b], a.type, dims);
  if (!g.hasFusedKernels) {
    const left = transA ? lastTwoSwapped(g, a) : a;
    const right = transB ? lastTwoSwapped(g, b) : b;
    return scaledProduct(g, left, right, dims, alpha);
  }
  const attributes = { transA: Number(transA), transB: Number(transB), alpha: { float: alpha } };
  return g.emit('FusedMatMul', [a, b], a.type, dims, attributes, contrib);
}

/**
 * alpha · a · b, for matmul kernels that take no factor. Multiplies a, b or the product by alpha, whichever has the
 * fewest elements.
 */
function scaledProduct(g: Graph, a: Value, b: Value, dims: readonly Dim[], alpha: number): Value {
  const times = (x: Value): Value => (alpha === 1 ? x : binary(g, 'Mul', x, g.scalar(alpha, expectFloat('matmul', x))));
  const [inA, inB, inProduct] = [a.dims, b.dims, dims].map(guessedSize);
  if (inProduct < Math.min(inA, inB)) return times(g.emit('MatMul', [a, b], a.type, dims));
  return inA <= inB ? g.emit('MatMul', [times(a), b], a.type, dims) : g.emit('MatMul', [a, times(b)], a.type, dims);
}

/** Estimated number of elements, with every symbol assumed to be 256. */
const guessedSize = (dims: readonly Dim[]): number =>
  dims.reduce<number>((size, dim) => size * (typeof dim === 'number' ? dim : 256), 1);

function lastTwoSwapped(g: Graph, x: Value): Value {
  const lead = x.dims.length - 2;
  const perm = [...Array(lead).keys(), lead + 1, lead];
  return g.emit(
    'Transpose',
    [x],
    x.type,
    perm.map(axis => x.dims[axis]),
    { perm },
  );
}

/** Throws unless the value is of a float type and has `rank` axes, or at least 2 axes if `rank` is omitted. */
function expectMatrix(op: string, x: Value, rank?: number): void {
  expectFloat(op, x);
  if (x.dims.length < 2 || (rank !== undefined && x.dims.length !== rank))
    throw new Error(`graph: ${op} needs ${rank ?? 'at least 2'} axes, got ${showDims(x.dims)} for ${x.name}`);
}

const sumLast = (g: Graph, x: Value): Value => reduced(g, 'ReduceSum', x, [x.dims.length - 1]);
const meanLastOf = (g: Graph, x: Value): Value => reduced(g, 'ReduceMean', x, [x.dims.length - 1]);
