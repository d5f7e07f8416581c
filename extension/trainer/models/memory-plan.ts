// Estimates the CPU memory of a run before it starts: weights, gradients and optimizer from the parameter count, keys
// and values from the rollout shape, activations from the graphs that will run (engine/graph-memory.ts), so
// checkpointing, chunked logits, adapters and 8-bit bases are included. Reads only the model's configuration. Measured
// rather than derived constants are in `measured`; test/unit/models/memory-plan.test.ts compares the plan with real
// processes.
import { appendAll } from '../../protocol/lists';
import { chunkSize } from '../engine/adamw';
import { blockSize } from '../engine/byte-moments';
import type { MomentFormat } from '../engine/engine';
import type { Graph } from '../engine/graph';
import { graphMemory } from '../engine/graph-memory';
import { headChunks, headTokens, logitsAtATime } from './batch-feeds';
import { continuedTokens } from './cross-scoring';
import { beginningsGraph, continuationsGraph } from './cross-graphs';
import { criticGraph, criticSpecs, valueHeadSpec, valuesGraph } from './critic';
import { elements, parameterSpecs } from './decoder-config';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import type { FileTensor, TensorSource } from './decoder-parameters';
import { decodedRows, prefillTokens } from './generator';
import { undoParameters } from './engine-undo';
import { loraSpecs } from './lora';
import type { LoraOptions } from './lora';
import { adaptedNetwork, frozenNetwork, trainedNetwork } from './networks';
import { arenasKept, passBytes } from './packed-sessions';
import { generateGraph, headGradientBytes, scoreGraph, updateGraph } from './policy-graphs';
import type { LossTerms, Network, PackedShape } from './policy-graphs';

/** Measured on Linux with Node 20 to 24 and onnxruntime 1.30. */
const measured = {
  /** Bytes of a process after loading onnxruntime and creating its sessions. */
  process: 110 * 2 ** 20,
  /** Bytes for reading frozen weights once in parts, including garbage not yet collected. */
  reading: 64 * 2 ** 20,
  /** Size of onnxruntime's arena relative to its live bytes: it grows by doubling and never shrinks. */
  arena: 1.3,
  /**
   * Size of the arena for passes with shared prefixes, relative to the arena for passes without, when both are kept.
   */
  sharedToo: 0.85,
  /** Bytes of an environment process including the compiler it starts. */
  environments: 90 * 2 ** 20,
  /** Bytes of a run's episodes and packed arrays, including garbage not yet collected. */
  episodes: 160 * 2 ** 20,
  /** Bytes of an optimizer step per parameter of the current chunk. */
  step: 160,
};

const momentBytes: Record<MomentFormat, number> = { float32: 8, int8: 2 + 8 / blockSize };

/**
 * Phases of a run, in the order of a step. Each phase also holds the memory of the previous ones, because arenas never
 * shrink.
 */
export const phases = ['loading', 'rollout', 'diagnosis', 'log-probs', 'critic update', 'policy update'] as const;
export type Phase = (typeof phases)[number];

export interface PlanInput {
  decoder: DecoderConfig;
  /** Element type of the model's files. */
  stored: FileTensor['dtype'];
  /** Null trains all weights. */
  lora: LoraOptions | null;
  rolloutQuantization: 'none' | 'int8';
  baseQuantization: 'none' | 'int8';
  /** Storage format of the optimizer moments. */
  moments: { actor: MomentFormat; critic: MomentFormat };
  /** Activations are recomputed in the backward pass. */
  checkpointed: boolean;
  reference: boolean;
  critic: boolean;
  klLoss: boolean;
  lossMode: LossTerms['mode'];
  /** False for rollouts only. */
  trains: boolean;
  /** Maximum tokens of a sequence. */
  longest: number;
  /** Packed tokens of one pass with gradient, for the policy and for the critic. */
  updateTokens: number;
  criticTokens: number;
  /** Packed tokens of one old-log-prob pass (0 if the sampler's log-probs are used), and of one reference pass. */
  scoreTokens: number;
  referenceTokens: number;
  /** Packed tokens of one prompt pass of the collapse diagnosis; 0 without diagnosis. */
  diagnosisTokens: number;
  /** Number of concurrent episodes. */
  rollouts: number;
  /** Number of environment processes; 0 for the engine without a run. */
  environments: number;
  /** Whether samples share a prefix, such as the same system message. */
  sharesBeginnings: boolean;
}

export interface PlanRow {
  what: string;
  bytes: number;
  /** The formula as text. */
  how: string;
  /** The phase from which the memory is held. */
  phase: Phase;
}

export interface MemoryPlan {
  rows: PlanRow[];
  /** Bytes held at the end of each phase of the run. */
  phases: { phase: Phase; held: number }[];
  /** The peak bytes, and their phase. */
  peak: { phase: Phase; bytes: number };
}

export function planMemory(input: PlanInput): MemoryPlan {
  return new Planner(input).plan(input);
}

/**
 * Returns the most packed tokens per gradient pass of policy and critic for which the plan stays within `limitBytes`,
 * in whole sequences of maximum length; 0 if not even one sequence fits. At most 2²⁰.
 */
export function largestMicroBatchTokens(input: PlanInput, limitBytes: number): number {
  const planner = new Planner(input);
  const fits = (sequences: number): boolean => {
    const tokens = sequences * input.longest;
    return planner.plan({ updateTokens: tokens, criticTokens: tokens }).peak.bytes <= limitBytes;
  };
  const most = Math.max(1, Math.floor(mostTokens / input.longest));
  let [low, high] = [0, 1]; // `low` fits
  while (high <= most && fits(high)) [low, high] = [high, high * 2];
  high = Math.min(high, most + 1); // `high` does not fit or exceeds the maximum
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low * input.longest;
}

/** Maximum planned tokens per pass. */
const mostTokens = 2 ** 20;

type PassKind = 'update' | 'score' | 'reference' | 'critic' | 'values';

class Planner {
  private readonly base: Network;
  private readonly actor: Network;
  private readonly graphs = new Map<string, ReturnType<typeof graphMemory>>();

  constructor(private readonly input: PlanInput) {
    const { decoder: c, lora, longest } = input;
    const network = lora ? this.frozen(input.baseQuantization) : trainedNetwork(c);
    this.base = { ...network, maxPositions: longest };
    this.actor = lora ? adaptedNetwork(this.base, lora) : this.base;
  }

  plan(passes: Pick<PlanInput, 'updateTokens' | 'criticTokens'>): MemoryPlan {
    const rows = [
      ...this.weightRows(),
      ...this.rolloutRows(),
      ...(this.input.trains ? this.trainingRows(passes) : []),
    ].filter(({ bytes }) => bytes > 0);
    const held = phases
      .filter(phase => rows.some(row => row.phase === phase))
      .map(phase => {
        const until = rows.filter(row => phases.indexOf(row.phase) <= phases.indexOf(phase));
        return { phase, held: until.reduce((sum, { bytes }) => sum + bytes, 0) };
      });
    const { phase, held: bytes } = held.at(-1)!;
    return { rows, phases: held, peak: { phase, bytes } };
  }

  private weightRows(): PlanRow[] {
    const { decoder: c, lora, stored, critic, reference, baseQuantization, rolloutQuantization } = this.input;
    const all = count(parameterSpecs(c));
    const width = bytesOf[stored];
    const mapped = `${millions(all)} parameters × ${width} bytes, mapped from the model's files`;
    const rows = [row('loading', 'process', measured.process, 'Node and onnxruntime with their code and sessions, measured')]; // prettier-ignore
    const { environments } = this.input;
    rows.push(row('loading', 'environments', environments * measured.environments, `${environments} × ${measured.environments / 2 ** 20} MiB of a process, measured without the environment's own data`)); // prettier-ignore
    if (lora) {
      if (baseQuantization === 'none') rows.push(row('loading', 'base', all * width, mapped));
      if (baseQuantization === 'int8' || rolloutQuantization === 'int8')
        rows.push(row('loading', '8-bit base', all, `${millions(all)} parameters × 1 byte, mapped from the cache`));
      const trained = this.trained();
      rows.push(row('loading', 'adapters', trained * 4, `${millions(trained)} trained parameters × 4 bytes`));
      const linear = count(parameterSpecs(c).filter(({ name }) => isLinear(name, c)));
      const each = rolloutQuantization === 'none' ? 4 : 1;
      const how = `${millions(linear)} parameters of linear layers × ${each} byte${each > 1 ? 's' : ''}`;
      rows.push(row('rollout', 'base laid out for rollouts', linear * each, how));
    } else {
      rows.push(row('loading', 'weights', all * 4, `${millions(all)} parameters × 4 bytes`));
      if (reference) rows.push(row('loading', 'reference', all * width, mapped));
    }
    if (lora ?? reference) {
      const bytes = Math.min(measured.reading, all * 8);
      rows.push(row('loading', 'looking at frozen weights', bytes, 'a part at a time, measured'));
    }
    if (critic) {
      const own = this.criticTrained();
      rows.push(row('loading', 'critic', own * 4, `${millions(own)} parameters of its own × 4 bytes`));
    }
    return rows;
  }

  private rolloutRows(): PlanRow[] {
    const { decoder: c, longest, rollouts } = this.input;
    const together = Math.min(rollouts, decodedRows);
    const episodes = this.input.environments > 0 ? measured.episodes : 0;
    const perToken = 2 * c.layers * c.kvHeads * c.headSize * 4;
    return [
      row('rollout', 'episodes', episodes, 'episodes and packed arrays, with what waits to be collected, measured'),
      row(
        'rollout',
        'keys and values',
        (rollouts + together) * longest * perToken,
        `(${rollouts} episodes + ${together} in the batch) × ${longest} tokens × ${perToken} bytes`,
      ),
      row(
        'rollout',
        'generation',
        Math.max(this.decoding(together), this.prefilling()),
        `the larger of ${together} rows × 1 token and at most ${prefillTokens} tokens of prompts, × ${measured.arena}`,
      ),
    ];
  }

  private trainingRows({ updateTokens, criticTokens }: Pick<PlanInput, 'updateTokens' | 'criticTokens'>): PlanRow[] {
    const { scoreTokens, referenceTokens, reference, critic, moments } = this.input;
    const pass = (phase: Phase, what: string, kind: PassKind, tokens: number, whose: string): PlanRow =>
      row(phase, what, tokens > 0 ? this.arenas(kind, tokens) : 0, `${tokens} tokens through ${whose}, as its values live and die, × ${measured.arena}, with shared beginnings and without`); // prettier-ignore
    const rows = this.diagnosisRows();
    rows.push(pass('log-probs', 'old log-probs', 'score', scoreTokens, "the policy's graph without gradient"));
    if (reference)
      rows.push(pass('log-probs', 'reference log-probs', 'reference', referenceTokens, "the reference's graph"));
    if (critic)
      rows.push(
        pass('log-probs', 'values', 'values', criticTokens, "the critic's graph without gradient"),
        pass('critic update', 'critic activations', 'critic', criticTokens, "the critic's graph with gradient"),
      );
    if (critic) appendAll(rows, optimizerRows('critic update', 'critic ', this.criticTrained(), moments.critic));
    return [
      ...rows,
      pass('policy update', 'activations and logits', 'update', updateTokens, "the policy's graph with gradient"),
      ...optimizerRows('policy update', '', this.trained(), moments.actor),
      this.undoRow(),
    ];
  }

  /** Memory of the copy that a stop restores (engine-undo.ts). */
  private undoRow(): PlanRow {
    const { critic, moments } = this.input;
    const [own, critics] = [this.trained(), critic ? this.criticTrained() : 0];
    const bytes = own * (4 + momentBytes[moments.actor]) + critics * (4 + momentBytes[moments.critic]);
    const copied = own + critics <= undoParameters ? bytes : 0;
    return row('policy update', 'copy for a stop', copied, `${millions(own + critics)} trained × weight and moments`);
  }

  /** Cross-scoring: a prompt pass, whose keys and values are kept while texts continue from the longest prompt. */
  private diagnosisRows(): PlanRow[] {
    const { decoder: c, longest, diagnosisTokens: tokens } = this.input;
    if (tokens === 0) return [];
    const prompts = Math.max(1, Math.floor(tokens / longest));
    const t = Math.min(longest, tokens);
    const read = this.graph('beginnings', () => beginningsGraph(this.actor, { lowering: 'cpu', shared: false }))(
      sizesOf(c, { tokens: prompts * t, t, b: prompts, r: prompts }),
    );
    const texts = Math.min(tokens, continuedTokens);
    const chunks = headChunks(texts, c.vocabSize);
    const own = Math.min(longest, texts);
    const continued = this.graph(`continuations ${chunks}`, () =>
      continuationsGraph(this.actor, { lowering: 'cpu', chunks }),
    )(sizesOf(c, { tokens: texts, n: texts, t: own, m: Math.ceil(texts / own), u: longest, 'tokens+1': texts + 1, part: texts / chunks })); // prettier-ignore
    return [
      row('diagnosis', 'prompts of the diagnosis', measured.arena * read.peak + read.outputs, `${prompts * t} tokens with their keys and values, × ${measured.arena}`), // prettier-ignore
      row('diagnosis', 'texts of the diagnosis', measured.arena * continued.peak, `${texts} tokens after a prompt of ${longest}, × ${measured.arena}`), // prettier-ignore
    ];
  }

  private trained(): number {
    const { decoder, lora } = this.input;
    return count(lora ? loraSpecs(decoder, lora) : parameterSpecs(decoder));
  }

  private criticTrained(): number {
    const { decoder, lora } = this.input;
    return lora ? this.trained() + count([valueHeadSpec(decoder)]) : count(criticSpecs(decoder));
  }

  /**
   * Returns the bytes of the arenas of passes with and without shared prefixes. Both arenas are kept if their sum is
   * small (packed-sessions.ts), and one at a time if passes are large.
   */
  private arenas(kind: PassKind, tokens: number): number {
    const { decoder, longest, checkpointed, sharesBeginnings } = this.input;
    if (!sharesBeginnings) return this.peak(kind, tokens);
    const kept = !checkpointed && (kind === 'update' || kind === 'critic');
    const t = Math.min(longest, tokens);
    const perToken = passBytes(decoder, { tokens: 1, scores: t }, kept);
    const small = Math.min(tokens, Math.floor(arenasKept / (perToken * (1 + measured.sharedToo))));
    return Math.max(this.peak(kind, tokens), small > 1 ? (1 + measured.sharedToo) * this.peak(kind, small) : 0);
  }

  /**
   * Returns the arena bytes after passes of up to `tokens` in sequences of maximum length. The largest pass is not
   * always the peak: a pass with twice as many head chunks may need less memory than the largest pass with half as
   * many.
   */
  private peak(kind: PassKind, tokens: number): number {
    const { longest, decoder: c } = this.input;
    const t = Math.max(2, Math.min(longest, tokens));
    const n = Math.max(1, Math.floor(tokens / t)) * (t - 1);
    const atATime = logitsAtATime(kind === 'update' ? headGradientBytes(this.actor) : 0);
    const chunks = kind === 'critic' || kind === 'values' ? 1 : headChunks(n, c.vocabSize, atATime);
    const most = chunks > 1 ? this.passBytes(kind, headTokens(chunks / 2, c.vocabSize, atATime), t, chunks / 2) : 0;
    return Math.max(this.passBytes(kind, n, t, chunks), most);
  }

  /**
   * Returns the arena bytes after one pass of `n` predicted tokens in sequences of `t`; the graph's outputs are counted
   * with the gradients instead.
   */
  private passBytes(kind: PassKind, n: number, t: number, chunks: number): number {
    const { decoder: c } = this.input;
    const b = n / (t - 1);
    const memory = this.graph(`${kind} ${chunks}`, () => this.build(kind, chunks));
    const part = n / chunks; // size of `n0`, `weight1`, …: predicted tokens per chunk
    const { peak, outputs } = memory(sizesOf(c, { tokens: b * t, n, b, r: b, t, part, features: c.intermediateSize }));
    return measured.arena * peak - (kind === 'update' || kind === 'critic' ? outputs : 0);
  }

  private build(kind: PassKind, chunks: number): Graph {
    const { checkpointed, klLoss, lossMode, lora, decoder } = this.input;
    const shape: PackedShape = { lowering: 'cpu', shared: false, chunks, checkpointed };
    if (kind === 'score') return scoreGraph(this.actor, shape);
    if (kind === 'reference') return scoreGraph(lora ? this.base : { ...this.frozen('none'), maxPositions: this.base.maxPositions }, shape); // prettier-ignore
    if (kind === 'update') return updateGraph(this.actor, shape, { mode: lossMode, kl: klLoss ? 'k3' : null, entropy: true }); // prettier-ignore
    const value = valueHeadSpec(decoder);
    const network = lora ? adaptedNetwork(this.base, lora, [value]) : trainedNetwork(decoder, criticSpecs(decoder));
    const critic = { ...network, maxPositions: this.input.longest };
    return kind === 'critic' ? criticGraph(critic, shape) : valuesGraph(critic, { ...shape, checkpointed: false });
  }

  private decoding(rows: number): number {
    return this.generating(rows, 1, this.input.longest);
  }

  private prefilling(): number {
    const { longest, rollouts } = this.input;
    return this.generating(Math.max(1, Math.min(rollouts, Math.floor(prefillTokens / longest))), longest, 32);
  }

  /** Returns the bytes for `rows` rows of `t` new tokens each, over `s` cached ones. */
  private generating(rows: number, t: number, s: number): number {
    const { decoder: c, lora, rolloutQuantization } = this.input;
    const memory = this.graph('generate', () => {
      const base = this.frozen(rolloutQuantization);
      const plan = { ...base.plan, int8Products: rolloutQuantization === 'int8' };
      const network = lora ? adaptedNetwork({ ...base, plan }, { ...lora, dropout: 0 }) : trainedNetwork(c);
      return generateGraph({ ...network, maxPositions: this.input.longest }, 'cpu');
    });
    const { peak, outputs } = memory(sizesOf(c, { tokens: rows * t, r: rows, b: rows, t, s }));
    return measured.arena * peak + outputs;
  }

  private graph(key: string, build: () => Graph): ReturnType<typeof graphMemory> {
    let known = this.graphs.get(key);
    if (!known) this.graphs.set(key, (known = graphMemory(build())));
    return known;
  }

  /** Returns the frozen base as a network. Its graphs are planned but never run, so file locations are dummies. */
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

/**
 * Returns the sizes of a graph's dimensions: the given ones, dimensions derived from the heads, and `part` for the rows
 * of a head chunk.
 */
function sizesOf(c: DecoderConfig, given: Record<string, number>): (symbol: string) => number | undefined {
  const groups = c.heads / c.kvHeads;
  const { tokens, t, part } = given;
  const sizes: Record<string, number> = {
    ...given,
    'n*h': tokens * c.heads,
    'n*k': tokens * c.kvHeads,
    'n*g': tokens * groups,
    'u+t': given.u + t,
    e: Math.ceil(t / 2), // the early and the late tokens of a row
    l: Math.floor(t / 2),
  };
  return symbol => sizes[symbol] ?? (/^[a-z_]+\d+$/.test(symbol) ? part : within(symbol, t));
}

/** Any other dimension is a part of a row's tokens. */
const within = (symbol: string, t: number): number | undefined => (/^[a-z]$/.test(symbol) ? t : undefined);

const row = (phase: Phase, what: string, bytes: number, how: string): PlanRow => ({
  what,
  bytes: Math.ceil(bytes),
  how,
  phase,
});

/** Returns the rows for training `trained` parameters; `whose` is the prefix of the row names. */
function optimizerRows(phase: Phase, whose: string, trained: number, moments: MomentFormat): PlanRow[] {
  const m = millions(trained);
  const chunk = Math.min(trained, chunkSize);
  const each = momentBytes[moments];
  return [
    row(phase, `${whose}gradients`, trained * 8, `${m} trained × (4 bytes of the sum + 4 of a pass's own)`),
    row(phase, `${whose}optimizer`, trained * each, `${m} trained × ${each} bytes of two moments`),
    row(
      phase,
      `${whose}optimizer step`,
      chunk * measured.step,
      `${millions(chunk)} at a time × ${measured.step} bytes`,
    ),
  ];
}

const embedding = 'model.embed_tokens.weight';
/**
 * Returns whether the tensor is multiplied with activations: layer projections and the output head, which may be the
 * embedding.
 */
const isLinear = (name: string, { tiedHead }: DecoderConfig): boolean =>
  /_proj\.weight$|^lm_head\.weight$/.test(name) || (tiedHead && name === embedding);

const bytesOf: Record<FileTensor['dtype'], number> = { F32: 4, F16: 2, BF16: 2 };
const count = (specs: readonly ParameterSpec[]): number => specs.reduce((sum, { dims }) => sum + elements(dims), 0);
const millions = (n: number): string => `${(n / 1e6).toLocaleString('en', { maximumSignificantDigits: 3 })} M`;
