// Memory of single passes of a run. Builds the engine's graphs with the sizes of the run and computes their live bytes
// (engine/graph/graph-memory.ts). The results therefore account for checkpointing, chunked logits, adapters and 8-bit
// bases. packed-sessions.ts determines how many arenas (onnxruntime's memory pools) exist at a time; this file makes
// the same decision.
import type { Graph } from '../../engine/graph/graph';
import { graphMemory } from '../../engine/graph/graph-memory';
import { headChunks, headTokens, logitsAtATime } from '../graphs/batch-feeds';
import { criticGraph, criticSpecs, valueHeadSpec, valuesGraph } from '../decoder/critic';
import { parameterSpecs } from '../decoder/decoder-config';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { BaseQuantization } from '../../engine/load-options';
import type { FileTensor, TensorSource } from '../decoder/decoder-parameters';
import { prefillTokens } from '../generation/generator';
import { pieceTokens } from '../generation/host-cache';
import { block } from '../generation/key-value-cache';
import { adaptedNetwork, frozenNetwork, trainedNetwork } from '../decoder/networks';
import { arenasKept, passBytes } from '../graphs/packed-sessions';
import { generateGraph, headGradientBytes, scoreGraph, updateGraph } from '../graphs/policy-graphs';
import type { Network, PackedShape } from '../graphs/policy-graphs';
import type { PlanInput } from './plan-input';
import { measured } from './measured-memory';

export type PassKind = 'update' | 'score' | 'reference' | 'critic' | 'values';

/** Computes the memory of the passes of a run. */
export class PassMemory {
  private readonly base: Network;
  readonly actor: Network;
  private readonly graphs = new Map<string, ReturnType<typeof graphMemory>>();

  constructor(private readonly input: PlanInput) {
    const { decoder: c, lora, longest } = input;
    const network = lora ? this.frozen(input.baseQuantization) : trainedNetwork(c);
    this.base = { ...network, maxPositions: longest };
    this.actor = lora ? adaptedNetwork(this.base, lora, [], input.trainedEncoder) : this.base;
  }

  /**
   * Returns the bytes of a network's arenas. There is one arena for passes with shared prefixes and one for passes
   * without shared prefixes. All samples of a run begin with the same system message, so the sequences of a pass share
   * this message (packing.ts); a pass with a single sequence shares nothing. If the sum of both arenas is small, both
   * are counted. With large passes, only the larger arena is counted, because packed-sessions.ts then keeps only one
   * session open.
   */
  arenas(kind: PassKind, tokens: number): number {
    const { decoder, longest, checkpointed, sharesPrefixes } = this.input;
    if (!sharesPrefixes || tokens < 2 * longest) return this.peak(kind, tokens);
    const kept = !checkpointed && (kind === 'update' || kind === 'critic');
    const sequence = passBytes(decoder, { tokens: longest, scores: longest ** 2 }, kept);
    const small = Math.min(Math.floor(tokens / longest), Math.floor(arenasKept / sequence) - 1);
    const together = small > 0 ? this.sharing(kind, small * longest) + this.peak(kind, longest) : 0;
    return Math.max(this.sharing(kind, tokens), together);
  }

  /**
   * Returns the bytes of the critic's arenas. There is one arena for passes with gradient and one for passes without
   * gradient. If the sum of both arenas is small, both are counted. With large passes, only the larger arena is
   * counted, because packed-sessions.ts then keeps only one session open.
   */
  criticArenas(tokens: number): number {
    const { decoder, longest, checkpointed } = this.input;
    const size = { tokens: longest, scores: longest ** 2 };
    const sequence = passBytes(decoder, size, false) + passBytes(decoder, size, !checkpointed);
    const kept = Math.min(tokens, Math.floor(arenasKept / sequence) * longest);
    const together = kept > 0 ? this.arenas('values', kept) + this.arenas('critic', kept) : 0;
    return Math.max(this.arenas('critic', tokens), together);
  }

  /**
   * Returns the arena bytes of passes whose sequences have a common prefix. For chats of several turns, the common
   * prefix is assumed to be empty, because such chats may share little more than the system message. For chats of one
   * turn, the prompt is counted once per group.
   */
  private sharing(kind: PassKind, tokens: number): number {
    const { decoder: c, longest, answer, promptSharedBy } = this.input;
    if (promptSharedBy < 2 || answer + 1 >= longest) return this.peak(kind, tokens);
    const rows = Math.floor(tokens / longest);
    const m = Math.min(rows, promptSharedBy);
    const p = Math.ceil(rows / m);
    const n = p * m * answer;
    const u = longest - answer;
    const bytes = (chunks: number, n: number): number =>
      this.passBytes(kind, n, chunks, { tokens: p * u + n, n, b: p * m, r: p * m, p, u, t: answer }, true);
    const atATime = this.logitsAtATime(kind);
    const chunks = this.chunksOf(kind, n);
    const most = chunks > 1 ? bytes(chunks / 2, headTokens(chunks / 2, c.vocabSize, atATime)) : 0;
    return Math.max(bytes(chunks, n), most);
  }

  private logitsAtATime(kind: PassKind): number {
    return logitsAtATime(kind === 'update' ? headGradientBytes(this.actor) : 0);
  }

  /** Returns the number of chunks in which the predicted tokens of a pass go through the head. */
  private chunksOf(kind: PassKind, n: number): number {
    const { vocabSize } = this.input.decoder;
    return kind === 'critic' || kind === 'values' ? 1 : headChunks(n, vocabSize, this.logitsAtATime(kind));
  }

  /**
   * Returns the arena bytes after passes of up to `tokens` tokens, in sequences of maximum length. The largest pass is
   * not always the peak: it may have twice as many head chunks as a slightly smaller pass and therefore need less
   * memory.
   */
  private peak(kind: PassKind, tokens: number): number {
    const { longest, decoder: c } = this.input;
    const t = Math.max(2, Math.min(longest, tokens));
    const n = Math.max(1, Math.floor(tokens / t)) * (t - 1);
    const chunks = this.chunksOf(kind, n);
    const bytes = (chunks: number, n: number): number => {
      const b = n / (t - 1);
      return this.passBytes(kind, n, chunks, { tokens: b * t, n, b, r: b, t });
    };
    const most = chunks > 1 ? bytes(chunks / 2, headTokens(chunks / 2, c.vocabSize, this.logitsAtATime(kind))) : 0;
    return Math.max(bytes(chunks, n), most);
  }

  /**
   * Returns the arena bytes after one pass of `n` predicted tokens. Outputs of the graph are excluded; they are counted
   * with the gradients.
   */
  private passBytes(kind: PassKind, n: number, chunks: number, given: Record<string, number>, shared = false): number {
    const { decoder: c, pictures } = this.input;
    const features = (given.b ?? 1) * (pictures?.perSequence ?? 0);
    const memory = this.graph(`${kind} ${chunks} ${shared}`, () => this.build(kind, chunks, shared));
    const part = n / chunks; // size of `n0`, `weight1`, …: predicted tokens per chunk
    const { peak, outputs } = memory(sizesOf(c, { ...given, part, features, channels: c.intermediateSize }));
    return measured.arena * peak - (kind === 'update' || kind === 'critic' ? outputs : 0);
  }

  private build(kind: PassKind, chunks: number, shared: boolean): Graph {
    const { checkpointed, klLoss, lossMode, lora, decoder, pictures, trainedEncoder } = this.input;
    const shape: PackedShape = {
      lowering: 'cpu',
      shared,
      chunks,
      checkpointed,
      ...(pictures && { pictures: kind === 'update' && trainedEncoder ? 'trained' : 'shown' }),
    };
    if (kind === 'score') return scoreGraph(this.actor, shape);
    if (kind === 'reference')
      return scoreGraph(lora ? this.base : { ...this.frozen('none'), maxPositions: this.base.maxPositions }, shape);
    if (kind === 'update')
      return updateGraph(this.actor, shape, { mode: lossMode, kl: klLoss ? 'k3' : null, entropy: true });
    const value = valueHeadSpec(decoder);
    const network = lora
      ? adaptedNetwork(this.base, lora, [value], trainedEncoder)
      : trainedNetwork(decoder, criticSpecs(decoder));
    const critic = { ...network, maxPositions: this.input.longest };
    return kind === 'critic' ? criticGraph(critic, shape) : valuesGraph(critic, { ...shape, checkpointed: false });
  }

  decoding(rows: number): number {
    return this.generating(rows, 1, this.input.longest);
  }

  prefilling(): number {
    const { longest, rollouts, answer, promptSharedBy } = this.input;
    const prompt = Math.max(1, longest - answer);
    const t = Math.min(prompt, pieceTokens);
    const past = Math.ceil((prompt - t + 1) / block) * block;
    const distinct = Math.ceil(rollouts / Math.max(1, promptSharedBy));
    return this.generating(Math.max(1, Math.min(distinct, Math.floor(prefillTokens / prompt))), t, past);
  }

  /** Returns the bytes for `rows` rows of `t` new tokens each, over `s` cached tokens per row. */
  private generating(rows: number, t: number, s: number): number {
    const { decoder: c, lora, rolloutQuantization, trainedEncoder } = this.input;
    const memory = this.graph('generate', () => {
      const base = this.frozen(rolloutQuantization);
      const plan = { ...base.plan, int8Products: rolloutQuantization === 'int8' };
      const network = lora
        ? adaptedNetwork({ ...base, plan }, { ...lora, dropout: 0 }, [], trainedEncoder)
        : trainedNetwork(c);
      return generateGraph({ ...network, maxPositions: this.input.longest }, 'cpu');
    });
    const { peak, outputs } = memory(sizesOf(c, { tokens: rows * t, r: rows, b: rows, t, s }));
    return measured.arena * peak + outputs;
  }

  graph(key: string, build: () => Graph): ReturnType<typeof graphMemory> {
    let known = this.graphs.get(key);
    if (!known) this.graphs.set(key, (known = graphMemory(build())));
    return known;
  }

  /**
   * Returns the frozen base as a network. The graphs of this network are never run, so the file locations are dummies.
   */
  private frozen(quantization: BaseQuantization): Network {
    const { decoder: c, stored } = this.input;
    const nowhere = { file: '', offset: 0, bytes: 0 };
    const file: FileTensor = { kind: 'file', dtype: stored, ...nowhere };
    const specs = parameterSpecs(c);
    if (quantization === 'none')
      return frozenNetwork(c, { folder: '', tensors: new Map(specs.map(({ name }) => [name, file])) });
    const head = { name: 'lm_head.weight', dims: [c.vocabSize, c.hiddenSize] };
    const eightBit: TensorSource = { kind: 'int8', weight: nowhere, scale: nowhere };
    const plain: TensorSource = { ...file, dtype: 'F32' };
    const source = (name: string): TensorSource => (isLinear(name, c) && name !== embedding ? eightBit : plain);
    return { config: c, plan: { specs: c.tiedHead ? [...specs, head] : specs, source } };
  }
}

/**
 * Returns the sizes of a graph's dimensions: the given sizes, and sizes derived from the number of heads. The size of
 * the symbol `part` is the number of rows in a chunk of the output head.
 */
export function sizesOf(c: DecoderConfig, given: Record<string, number>): (symbol: string) => number | undefined {
  const groups = c.heads / c.kvHeads;
  const { tokens, t, part, b = 0, p = 0, u = 0 } = given;
  const sizes: Record<string, number> = {
    ...given,
    // Number of rows (token, head) in shared prefixes and in the suffixes after them. Keys have fewer heads than
    // queries but are counted with the same number.
    places: c.heads * (p * u + b * t),
    'places of block 0': c.heads * p * u,
    'places of block 1': c.heads * b * t,
    'n*h': tokens * c.heads,
    'n*k': tokens * c.kvHeads,
    'n*g': tokens * groups,
    'u+t': given.u + t,
    e: Math.ceil(t / 2), // early and late tokens of a row
    l: Math.floor(t / 2),
  };
  return symbol => sizes[symbol] ?? (/^[a-z_]+\d+$/.test(symbol) ? part : within(symbol, t));
}

/**
 * Returns the upper bound of a symbol that `sizesOf` does not list. Such a symbol is a number of tokens within one row.
 */
const within = (symbol: string, t: number): number | undefined => (/^[a-z]$/.test(symbol) ? t : undefined);

const embedding = 'model.embed_tokens.weight';
/**
 * Whether the tensor is multiplied with activations: a projection of a layer, or the output head, which may be the
 * embedding.
 */
export const isLinear = (name: string, { tiedHead }: DecoderConfig): boolean =>
  /_proj\.weight$|^lm_head\.weight$/.test(name) || (tiedHead && name === embedding);
