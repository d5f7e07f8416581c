// Uses a graph to sample the next token of each row, so that logits need not be copied to the host. Sampling is greedy,
// or by inverse CDF with one uniform number per row. The vocabulary is divided into blocks. Cumulative sums are
// computed first over the sums of the blocks, then within one block. This needs fewer additions and loses less
// precision than one long cumulative sum. Distributions with top-k, top-p, min-p or repetition penalty are sampled on
// the host (host-sampler.ts).
import { Graph } from '../graph/graph';
import type { Dim, Lowering, Value } from '../graph/graph';
import { binary, unary } from '../graph/ops';
import { isUncut } from './host-sampler';
import { Session, float32, int32, loweringOf } from '../session/session';
import type { SessionOptions, Tensor } from '../session/session';
import type { SamplingCuts } from './host-sampler';

/** Largest uniform number u for which u · total is less than the total in single precision. */
const belowOne = 1 - 2 ** -23;

export interface Drawn {
  tokens: Int32Array;
  logprobs: Float32Array;
}

export class Sampler {
  private readonly sessions = new Map<boolean, Promise<Session>>();

  constructor(
    private readonly vocab: number,
    private readonly options: SessionOptions,
  ) {}

  /**
   * Samples one token per row from logits [rows, vocab], with one uniform number per row. Throws if `cuts` truncates
   * the distribution.
   */
  async draw(logits: Tensor, uniforms: Float32Array, cuts: SamplingCuts): Promise<Drawn> {
    if (!isUncut(cuts)) throw new Error('sampler: top-k, top-p, min-p and repetition penalty require the host sampler');
    const greedy = !cuts.do_sample;
    let session = this.sessions.get(greedy);
    if (!session) {
      const graph = samplerGraph(this.vocab, greedy, loweringOf(this.options));
      this.sessions.set(greedy, (session = Session.create(graph, this.options)));
    }
    const { token, height, total } = await (
      await session
    ).run({
      logits,
      inverse_temperature: float32(Float32Array.of(1 / cuts.temperature), []),
      ...(!greedy && this.uniformFeeds(uniforms)),
    });
    // The logarithm is computed on the host, because the rounding of onnxruntime's Log operator depends on the row's
    // position in the batch.
    const totals = total.data as Float32Array;
    const logprobs = (height.data as Float32Array).map((h, row) => h - Math.log(totals[row]));
    return { tokens: Int32Array.from(token.data, Number), logprobs };
  }

  private uniformFeeds(uniforms: Float32Array): Record<string, Tensor> {
    const dims = [uniforms.length, 1];
    const { blocks } = blocksOf(this.vocab);
    return {
      uniform: float32(
        uniforms.map(u => Math.min(u, belowOne)),
        dims,
      ),
      first_rows: int32(
        Int32Array.from(uniforms, (_, row) => row * blocks),
        dims,
      ),
    };
  }
}

/**
 * Inputs: logits [b, vocab] and inverse_temperature. If sampling is not greedy, there are two more inputs: uniform [b,
 * 1], and first_rows [b, 1] with the index of each row's first block, counted over the blocks of all rows. Outputs, all
 * [b, 1]: token, the token's scaled logit minus the row maximum (≤ 0), and the sum of exp(scaled logit − row maximum).
 */
export function samplerGraph(vocab: number, greedy: boolean, lowering: Lowering): Graph {
  const g = new Graph('sampler', lowering);
  const scaled = binary(
    g,
    'Mul',
    g.input('logits', 'float32', ['b', vocab]),
    g.input('inverse_temperature', 'float32', []),
  );
  const last = g.integers([1]);
  const column: Dim[] = ['b', 1];
  const top = g.emit('ReduceMax', [scaled, last], 'float32', column, { keepdims: 1 });
  const weights = unary(g, 'Exp', binary(g, 'Sub', scaled, top));
  const { token, total } = greedy ? topToken(g, scaled, weights) : inverted(g, weights, vocab);
  const at = token.dims.length === 2 ? token : g.emit('Reshape', [token, g.integers([-1, 1])], token.type, column);
  const chosen = g.emit('GatherElements', [scaled, at], 'float32', column, { axis: 1 });
  g.output('token', token);
  g.output('height', binary(g, 'Sub', chosen, top));
  g.output('total', total);
  return g;
}

function topToken(g: Graph, scaled: Value, weights: Value): { token: Value; total: Value } {
  const best = g.emit('ArgMax', [scaled], 'int64', ['b', 1], { axis: 1, keepdims: 1 });
  const total = g.emit('ReduceSum', [weights, g.integers([1])], 'float32', ['b', 1], { keepdims: 1 });
  return { token: best, total };
}

/**
 * Returns each row's sampled token and total weight. The token is the first whose cumulative weight exceeds uniform ·
 * total.
 */
function inverted(g: Graph, weights: Value, vocab: number): { token: Value; total: Value } {
  const uniform = g.input('uniform', 'float32', ['b', 1]);
  const firstRow = g.input('first_rows', 'int32', ['b', 1]);
  const { size, blocks } = blocksOf(vocab);
  const padding = blocks * size - vocab;
  const padded =
    padding > 0 ? g.emit('Pad', [weights, g.integers([0, 0, 0, padding])], 'float32', ['b', blocks * size]) : weights;
  const grid = g.emit('Reshape', [padded, g.integers([-1, blocks, size])], 'float32', ['b', blocks, size]);
  const sums = g.emit('ReduceSum', [grid, g.integers([2])], 'float32', ['b', blocks], { keepdims: 0 });
  const cumulative = g.emit('CumSum', [sums, g.integers([1])], 'float32', ['b', blocks]);
  const slice = (x: Value, from: number): Value =>
    g.emit('Slice', [x, g.integers([from]), g.integers([from + 1]), g.integers([1])], 'float32', ['b', 1]);
  const total = slice(cumulative, blocks - 1);
  const target = binary(g, 'Mul', uniform, total);
  const block = countUpTo(g, cumulative, target, blocks - 1);
  const before = binary(
    g,
    'Sub',
    g.emit('GatherElements', [cumulative, block], 'float32', ['b', 1], { axis: 1 }),
    g.emit('GatherElements', [sums, block], 'float32', ['b', 1], { axis: 1 }),
  );
  const rows = g.emit('Reshape', [grid, g.integers([-1, size])], 'float32', ['b*blocks', size]);
  const row = g.emit('Reshape', [binary(g, 'Add', firstRow, block), g.integers([-1])], 'int32', ['b']);
  const inside = g.emit('Gather', [rows, row], 'float32', ['b', size], { axis: 0 });
  const within = binary(g, 'Add', g.emit('CumSum', [inside, g.integers([1])], 'float32', ['b', size]), before);
  const index = countUpTo(g, within, target, size - 1);
  const scale = g.constant('int32', [], Int32Array.of(size));
  const clamped = binary(
    g,
    'Min',
    binary(g, 'Add', binary(g, 'Mul', block, scale), index),
    g.constant('int32', [], Int32Array.of(vocab - 1)),
  );
  return { token: clamped, total };
}

/**
 * Returns for each row how many of its entries do not exceed the row's target, as int32 [b, 1]. A number above `limit`
 * becomes `limit`.
 */
function countUpTo(g: Graph, cumulative: Value, target: Value, limit: number): Value {
  const notYet = g.emit('LessOrEqual', [cumulative, target], 'bool', cumulative.dims);
  const ones = g.emit('Cast', [notYet], 'float32', cumulative.dims, { to: 1 });
  const count = g.emit('ReduceSum', [ones, g.integers([1])], 'float32', ['b', 1], { keepdims: 1 });
  return g.emit('Cast', [binary(g, 'Min', count, g.scalar(limit))], 'int32', ['b', 1], { to: 6 });
}

/**
 * Returns the block size and the number of blocks for a vocabulary. The block size is near the square root of the
 * vocabulary size and, if possible, divides the vocabulary size. Otherwise the last block is padded.
 */
function blocksOf(vocab: number): { size: number; blocks: number } {
  const root = Math.ceil(Math.sqrt(vocab));
  let size = root;
  while (size < 4 * root && vocab % size !== 0) size++;
  if (vocab % size !== 0) size = root;
  return { size, blocks: Math.ceil(vocab / size) };
}
