// How much memory a run will take on the CPU, before it runs: weights, gradients and optimizer from the number of parameters, keys and
// values from the rollouts' shape, activations from the very graphs that will run (engine/graph-memory.ts), so that checkpointing, chunked
// logits, adapters and 8-bit bases are counted as they are. Nothing is read from the model but its configuration.
// What is not derived but measured stands in `measured`; test/unit/models/memory-plan.test.ts holds the plan against real processes.
import { chunkSize } from '../engine/adamw';
import { blockSize } from '../engine/byte-moments';
import type { LoadOptions, MomentFormat } from '../engine/engine';
import { graphMemory, runOrder } from '../engine/graph-memory';
import type { Graph, Node } from '../engine/graph';
import { headChunks } from './batch-feeds';
import { criticGraph, criticSpecs, valueHeadSpec } from './critic';
import { elements, parameterSpecs } from './decoder-config';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import type { FileTensor, TensorSource } from './decoder-parameters';
import { decodedRows, prefillTokens } from './generator';
import { loraSpecs } from './lora';
import type { LoraOptions } from './lora';
import { adaptedNetwork, frozenNetwork, trainedNetwork } from './networks';
import { generateGraph, scoreGraph, updateGraph } from './policy-graphs';
import type { Network, PackedShape } from './policy-graphs';

/** What was measured on Linux with Node 20 to 24 and onnxruntime 1.30. */
const measured = {
  /** Bytes of a process that has loaded onnxruntime and made its sessions. */
  process: 120 * 2 ** 20,
  /** onnxruntime's arena over the bytes alive in it: it grows by doubling and gives nothing back. */
  arena: 1.3,
  /** Bytes of an optimizer step for each parameter of the chunk in hand. */
  step: 160,
};

const momentBytes: Record<MomentFormat, number> = { float32: 8, int8: 2 + 8 / blockSize };

export interface PlanInput {
  decoder: DecoderConfig;
  /** How the model's files hold their numbers. */
  stored: FileTensor['dtype'];
  /** Null trains all weights. */
  lora: LoraOptions | null;
  rolloutQuantization: 'none' | 'int8';
  baseQuantization: 'none' | 'int8';
  /** Activations are computed again on the way back. */
  checkpointed: boolean;
  reference: boolean;
  critic: boolean;
  /** How the optimizers hold their moments; in float32 where nothing is said. */
  moments?: LoadOptions['moments'];
  klLoss: boolean;
  /** Most tokens of a sequence. */
  longest: number;
  /** Packed tokens of one pass with gradient, and of one without. */
  updateTokens: number;
  scoreTokens: number;
  /** Episodes played at the same time. */
  rollouts: number;
}

export interface PlanRow {
  what: string;
  bytes: number;
  /** The formula in words. */
  how: string;
}

export interface MemoryPlan {
  rows: PlanRow[];
  total: number;
}

export function planMemory(input: PlanInput): MemoryPlan {
  return new Planner(input).plan(input.updateTokens);
}

/**
 * Most packed tokens of a pass with gradient for which the plan stays within `limitBytes`, in steps of the longest sequence; 0 where not
 * even one such sequence fits.
 */
export function largestMicroBatchTokens(input: PlanInput, limitBytes: number): number {
  const planner = new Planner(input);
  const fits = (sequences: number): boolean => planner.plan(sequences * input.longest).total <= limitBytes;
  let [low, high] = [0, 1]; // low fits, high does not
  while (high * input.longest <= mostTokens && fits(high)) [low, high] = [high, high * 2];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low * input.longest;
}

/** No pass is planned with more. */
const mostTokens = 2 ** 20;

class Planner {
  private readonly base: Network;
  private readonly actor: Network;
  private readonly graphs = new Map<string, { graph: Graph; order: Node[] }>();

  constructor(private readonly input: PlanInput) {
    const { decoder: c, lora, longest } = input;
    const network = lora ? this.frozen(input.baseQuantization) : trainedNetwork(c);
    this.base = { ...network, maxPositions: longest };
    this.actor = lora ? adaptedNetwork(this.base, lora) : this.base;
  }

  plan(updateTokens: number): MemoryPlan {
    const { decoder: c, lora, stored, longest, rollouts, scoreTokens } = this.input;
    const all = count(parameterSpecs(c));
    const trained = lora ? count(loraSpecs(c, lora)) : all;
    const width = bytesOf[stored];
    const rows: PlanRow[] = [
      { what: 'process', bytes: measured.process, how: 'Node and onnxruntime with their code and sessions, measured' },
    ];
    const add = (what: string, bytes: number, how: string): void => {
      rows.push({ what, bytes: Math.ceil(bytes), how });
    };
    if (lora) {
      const eight = this.input.baseQuantization === 'int8' || this.input.rolloutQuantization === 'int8';
      if (this.input.baseQuantization === 'none')
        add('base', all * width, `${millions(all)} parameters × ${width} bytes, mapped from the model's files`);
      if (eight) add('8-bit base', all, `${millions(all)} parameters × 1 byte, mapped from the cache`);
      const float = this.input.rolloutQuantization === 'none';
      const linear = all - count(parameterSpecs(c).filter(({ name }) => !isLinear(name, c)));
      add(
        'base laid out for rollouts',
        linear * (float ? 4 : 1),
        `${millions(linear)} parameters of linear layers × ${float ? 4 : 1} bytes`,
      );
      add('adapters', trained * 4, `${millions(trained)} trained parameters × 4 bytes`);
    } else add('weights', all * 4, `${millions(all)} parameters × 4 bytes`);
    if (this.input.reference && !lora)
      add('reference', all * width, `${millions(all)} parameters × ${width} bytes, mapped from the model's files`);
    add('gradients', trained * 8, `${millions(trained)} trained × (4 bytes of the sum + 4 of a pass's own)`);
    const { actor, critic } = this.input.moments ?? { actor: 'float32', critic: 'float32' };
    add('optimizer', trained * momentBytes[actor], `${millions(trained)} trained × ${momentBytes[actor]} bytes of two moments`); // prettier-ignore
    add('optimizer step', Math.min(trained, chunkSize) * measured.step, `${chunkSize} parameters at a time × ${measured.step} bytes`); // prettier-ignore
    if (this.input.critic) {
      const head = count([valueHeadSpec(c)]);
      const own = lora ? trained + head : count(criticSpecs(c));
      const each = 12 + momentBytes[critic];
      add(
        'critic',
        own * each,
        `${millions(own)} parameters × (4 + 8 of gradients + ${momentBytes[critic]} of moments)`,
      );
      add(
        'critic activations',
        this.peak('critic', updateTokens),
        `${updateTokens} tokens through the critic's graph with gradient`,
      );
    }
    add(
      'activations and logits',
      this.peak('update', updateTokens),
      `${updateTokens} tokens through the policy's graph with gradient, as its values live and die, × ${measured.arena}`,
    );
    const scored = this.peak('score', scoreTokens);
    add('scoring', scored * (this.input.reference ? 2 : 1), `${scoreTokens} tokens without gradient${this.input.reference ? ', by policy and reference' : ''}, × ${measured.arena}`); // prettier-ignore
    const together = Math.min(rollouts, decodedRows);
    const perToken = 2 * c.layers * c.kvHeads * c.headSize * 4;
    add(
      'keys and values',
      (rollouts + together) * longest * perToken,
      `(${rollouts} episodes + ${together} in the batch) × ${longest} tokens × ${perToken} bytes`,
    );
    add(
      'generation',
      Math.max(this.decoding(together), this.prefilling()),
      `the larger of ${together} rows × 1 token and ${prefillTokens} tokens of prompts, × ${measured.arena}`,
    );
    return { rows, total: rows.reduce((sum, { bytes }) => sum + bytes, 0) };
  }

  /** Bytes of the arena after a pass of `tokens` in sequences of the greatest length. */
  private peak(kind: 'update' | 'score' | 'critic', tokens: number): number {
    const { decoder: c, longest } = this.input;
    const t = Math.min(longest, tokens);
    const b = Math.max(1, Math.floor(tokens / t));
    const n = b * (t - 1);
    const chunks = kind === 'critic' ? 1 : headChunks(n, c.vocabSize);
    const { graph, order } = this.graph(`${kind} ${chunks}`, () => this.build(kind, chunks));
    const sizes = new Map([
      ['tokens', b * t],
      ['n', n],
      ['b', b],
      ['t', t],
      ['n*h', b * t * c.heads],
      ['n*k', b * t * c.kvHeads],
      ['features', c.intermediateSize],
    ]);
    const part = Math.ceil(n / chunks); // `n0`, `weight1`, …: what a chunk has of the predicted tokens
    const { peak, outputs } = graphMemory(
      graph,
      symbol => sizes.get(symbol) ?? (/^[a-z_]+\d+$/.test(symbol) ? part : undefined),
      order,
    );
    // The outputs are counted with the gradients.
    return measured.arena * peak - (kind === 'score' ? 0 : outputs);
  }

  private build(kind: 'update' | 'score' | 'critic', chunks: number): Graph {
    const { checkpointed, klLoss, critic, lora, decoder } = this.input;
    const shape: PackedShape = { lowering: 'cpu', shared: false, chunks, checkpointed };
    if (kind === 'score') return scoreGraph(this.actor, shape);
    if (kind === 'update') return updateGraph(this.actor, shape, { kl: klLoss ? 'k3' : null, entropy: true });
    if (!critic) throw new Error('memory plan: there is no critic');
    const value = valueHeadSpec(decoder);
    const network = lora ? adaptedNetwork(this.base, lora, [value]) : trainedNetwork(decoder, criticSpecs(decoder));
    return criticGraph({ ...network, maxPositions: this.input.longest }, shape);
  }

  private decoding(rows: number): number {
    return this.generating(rows, 1, this.input.longest);
  }

  private prefilling(): number {
    const { longest } = this.input;
    return this.generating(Math.max(1, Math.floor(prefillTokens / longest)), longest, 32);
  }

  /** `rows` rows of `t` new tokens each, over `s` cached ones. */
  private generating(rows: number, t: number, s: number): number {
    const { decoder: c, lora, rolloutQuantization } = this.input;
    const { graph, order } = this.graph('generate', () => {
      const base = this.frozen(rolloutQuantization);
      const plan = { ...base.plan, int8Products: rolloutQuantization === 'int8' };
      const network = lora ? adaptedNetwork({ ...base, plan }, { ...lora, dropout: 0 }) : trainedNetwork(c);
      return generateGraph({ ...network, maxPositions: this.input.longest }, 'cpu');
    });
    const sizes = new Map([
      ['tokens', rows * t],
      ['r', rows],
      ['b', rows],
      ['t', t],
      ['s', s],
      ['n*h', rows * t * c.heads],
      ['n*k', rows * t * c.kvHeads],
    ]);
    const { peak, outputs } = graphMemory(graph, symbol => sizes.get(symbol), order);
    return measured.arena * peak + outputs;
  }

  private graph(key: string, build: () => Graph): { graph: Graph; order: Node[] } {
    let known = this.graphs.get(key);
    if (!known) {
      const graph = build();
      this.graphs.set(key, (known = { graph, order: runOrder(graph) }));
    }
    return known;
  }

  /** The frozen base as a network. Its graphs are planned and never run, so the places in files are none. */
  private frozen(quantization: 'none' | 'int8'): Network {
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

const embedding = 'model.embed_tokens.weight';
/** Whether the tensor is multiplied with activations: layers' projections and the output head, which may be the embedding. */
const isLinear = (name: string, { tiedHead }: DecoderConfig): boolean =>
  /_proj\.weight$|^lm_head\.weight$/.test(name) || (tiedHead && name === embedding);

const bytesOf: Record<FileTensor['dtype'], number> = { F32: 4, F16: 2, BF16: 2 };
const count = (specs: readonly ParameterSpec[]): number => specs.reduce((sum, { dims }) => sum + elements(dims), 0);
const millions = (n: number): string => `${(n / 1e6).toPrecision(3)} M`;
