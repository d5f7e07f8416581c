// Graphs of cross-scoring (cross-scoring.ts). The prefix graph processes prompts and returns the keys and values of
// their tokens; the suffix graph continues one prompt with many texts. One matmul multiplies the queries of all texts
// with the prompt's keys, so the prompt is neither recomputed nor copied for each text. Neither graph is
// differentiable.
import { Graph } from '../../engine/graph/graph';
import type { Dim, Lowering, Value } from '../../engine/graph/graph';
import { matmul, softmax, tokenLogProbs } from '../../engine/graph/layer-ops';
import { add, cast, gatherRows, mul, reshape } from '../../engine/graph/ops';
import { concatLast, splitLast, splitRows } from '../../engine/graph/packed-ops';
import { packedAttention } from '../decoder/attention';
import { decoderHidden, decoderLogits } from '../decoder/decoder';
import type { Attend } from '../decoder/decoder';
import type { DecoderConfig } from '../decoder/decoder-config';
import { DecoderParameters } from '../decoder/decoder-parameters';
import { pictureInputs } from './picture-feeds';
import type { Network, PackedShape } from './policy-graphs';

/**
 * Builds the graph that processes prompts. Inputs: packed tokens (packing.ts), ends [r] (indices of packed tokens); with
 * `pictures`, also those of picture-feeds.ts.
 * Outputs: key.i and value.i of all tokens, [n, kvHeads·headSize], and `last` [r, hidden], the hidden states of the
 * tokens at `ends`.
 */
export function prefixGraph(
  network: Network,
  { lowering, shared, pictures }: Pick<PackedShape, 'lowering' | 'shared' | 'pictures'>,
): Graph {
  const g = new Graph('prefixes', lowering);
  const parameters = new DecoderParameters(g, network.plan);
  const { attend } = packedAttention(g, network.config, shared);
  const attendAndKeep: Attend = (layer, q, k, v) => {
    g.output(`key.${layer}`, k);
    g.output(`value.${layer}`, v);
    return attend(layer, q, k, v);
  };
  const hidden = hiddenStates(g, network, parameters, attendAndKeep, pictures !== undefined);
  g.output('last', gatherRows(g, hidden, g.input('ends', 'int64', ['r'])));
  return g;
}

/**
 * Builds the graph that continues a prompt of u tokens with m texts of at most t tokens. The texts have n packed tokens
 * in total. Output: logprob [n']. Inputs:
 * * ids and positions of the packed tokens.
 * * beginning_key.i and beginning_value.i [kvHeads, u, headSize]: the keys and values of the prompt.
 * * before [1, hidden]: the prompt's last hidden state, which the graph appends to the hidden states of the texts.
 * * rows and targets [n'], inverse_temperature, and chunk_sizes if there are several chunks: as in the score graph.
 * * the inputs of continuedAttention.
 */
export function suffixGraph(network: Network, { lowering, chunks }: { lowering: Lowering; chunks: number }): Graph {
  const { config } = network;
  const g = new Graph('suffixes', lowering);
  const parameters = new DecoderParameters(g, network.plan);
  const hidden = hiddenStates(g, network, parameters, continuedAttention(g, config));
  const before = g.input('before', 'float32', [1, config.hiddenSize]);
  const all = g.emit('Concat', [hidden, before], 'float32', ['tokens+1', config.hiddenSize], { axis: 0 });
  const rows = g.input('rows', 'int64', ['n']);
  const targets = g.input('targets', 'int64', ['n']);
  const predicting = mul(g, gatherRows(g, all, rows), g.input('inverse_temperature', 'float32', []));
  const sizes = chunks > 1 ? g.input('chunk_sizes', 'int64', [chunks]) : null;
  const split = (value: Value): Value[] => (sizes ? splitRows(g, value, sizes, 'n') : [value]);
  const targetsOf = split(targets);
  const parts = split(predicting).map((part, i) =>
    chosenLogProbs(g, decoderLogits(config, parameters, part), targetsOf[i]),
  );
  g.output('logprob', parts.length === 1 ? parts[0] : g.emit('Concat', parts, 'float32', ['n'], { axis: 0 }));
  return g;
}

function hiddenStates(
  g: Graph,
  { config, maxPositions }: Network,
  parameters: DecoderParameters,
  attend: Attend,
  pictured = false,
): Value {
  const ids = g.input('ids', 'int64', ['tokens']);
  const positions = g.input('positions', 'int64', ['tokens']);
  const pictures = pictured ? pictureInputs(g, config) : undefined;
  return decoderHidden(g, config, parameters, { ids, positions, maxPositions, pictures }, attend);
}

/**
 * Returns the attention for several texts that continue one prompt. Each query attends to the prompt and to its own
 * text. For attention over the prompt, one matmul multiplies all queries with the prompt's keys; each query is one row.
 * The rows are sorted by key head, then by token, then by query head within the group of the key head. Within the
 * texts, queries form blocks of t tokens, as in packedAttention. Inputs, int32 except the last one:
 * * by_head [kvHeads, n·groups]: the query (token·heads + head) of each matmul row; heads_back [n·heads] is its
 * inverse.
 * * query_blocks [kvHeads, m, groups·t] and key_blocks [kvHeads, m, t]: the query and the key of each block slot.
 * * own_rows [kvHeads, m, groups·t]: the matmul row of each block slot.
 * * own_places [kvHeads, n·groups]: the block slot of each matmul row.
 * * own_mask [groups·t, t]: the causal mask, float32.
 */
function continuedAttention(g: Graph, c: DecoderConfig): Attend {
  const groups = c.heads / c.kvHeads;
  const alpha = c.headSize ** -0.5;
  const gt: Dim = groups === 1 ? 't' : `${groups}*t`;
  const index = (name: string, ...dims: Dim[]): Value => g.input(name, 'int32', dims);
  const byHead = index('by_head', c.kvHeads, 'n*g');
  const headsBack = index('heads_back', 'n*h');
  const queryBlocks = index('query_blocks', c.kvHeads, 'm', gt);
  const keyBlocks = index('key_blocks', c.kvHeads, 'm', 't');
  const ownRows = index('own_rows', c.kvHeads, 'm', gt);
  const ownPlaces = index('own_places', c.kvHeads, 'n*g');
  const ownMask = g.input('own_mask', 'float32', [gt, 't']);
  /** Gathers rows of x by index; all axes of x before the last are flattened. */
  const pick = (x: Value, from: Value): Value => {
    const width = x.dims.at(-1)!;
    const rows = reshape(g, x, [x.dims.slice(0, -1).join('*'), width]);
    return g.emit('Gather', [rows, from], 'float32', [...from.dims, width], { axis: 0 });
  };
  return (layer, q, k, v) => {
    const [keys, values] = ['key', 'value'].map(stem =>
      g.input(`beginning_${stem}.${layer}`, 'float32', [c.kvHeads, 'u', c.headSize]),
    );
    const queries = reshape(g, q, ['n*h', c.headSize]);
    const [ownKeys, ownValues] = [k, v].map(x => pick(reshape(g, x, ['n*k', c.headSize]), keyBlocks));
    const toPrompt = matmul(g, pick(queries, byHead), keys, { transB: true, alpha });
    const inBlocks = matmul(g, pick(queries, queryBlocks), ownKeys, { transB: true, alpha });
    const toOwn = pick(add(g, inBlocks, ownMask), ownPlaces);
    const weights = softmax(g, concatLast(g, toPrompt, toOwn, 'u+t'));
    const [onPrompt, onOwn] = splitLast(g, weights, toPrompt, toOwn);
    const ofOwn = pick(matmul(g, pick(onOwn, ownRows), ownValues), ownPlaces);
    return reshape(g, pick(add(g, matmul(g, onPrompt, values), ofOwn), headsBack), q.dims);
  };
}

/**
 * Returns the log-probs of `targets` [n] under softmax(logits [n, vocab]). Does not use LogSoftmax on WebGPU, which has
 * no kernel for it.
 */
function chosenLogProbs(g: Graph, logits: Value, targets: Value): Value {
  if (g.lowering === 'webgpu') return tokenLogProbs(g, logits, targets).logprob;
  const [n, vocab] = logits.dims;
  const all = g.emit('LogSoftmax', [cast(g, logits, 'float32')], 'float32', [n, vocab], { axis: 1 });
  const at = g.emit('Unsqueeze', [targets, g.integers([1])], 'int64', [n, 1]);
  return reshape(g, g.emit('GatherElements', [all, at], 'float32', [n, 1], { axis: 1 }), [n]);
}
