// Cross-scoring for the diagnosis of template collapse: the log-prob of every text after every prompt. A naive
// implementation would process each prompt once per text. Here each distinct prompt is processed once, and its keys and
// values are reused for all texts. A common prefix of several prompts is also processed only once. Equal texts are
// computed once per prompt. Logits are computed only for the tokens of texts. Invariant: except for rounding, the
// log-prob of a text after a prompt depends neither on the other texts and prompts nor on the maximum number of tokens
// per pass.
import { maximum } from '../common/lists';
import type { PassBudget, ShownFeatures } from '../engine/training-samples';
import { masked } from '../engine/session/padding';
import { float32, int32, int64 } from '../engine/session/session';
import type { SessionOptions, Tensor } from '../engine/session/session';
import { unwatched } from '../engine/work-units';
import { chunkFeeds, headChunks, scalarFeeds } from './graphs/batch-feeds';
import { prefixGraph, suffixGraph } from './graphs/cross-graphs';
import type { DecoderConfig } from './decoder/decoder-config';
import { withoutDropout } from './decoder/networks';
import { PackedSessions, passSize } from './graphs/packed-sessions';
import { headIndex } from './graphs/head-index';
import { packPass } from './graphs/packing';
import { featureFeeds, pictureFeeds } from './graphs/picture-feeds';
import { passCosts, planPasses } from './graphs/pass-plan';
import type { ParameterBank } from './weights/parameter-bank';
import type { Network } from './graphs/policy-graphs';

/**
 * Maximum number of text tokens that one pass scores after a prompt. Of the values from 256 to 4096, this one was the
 * fastest on the CPU, because the attention scores fit into the CPU's caches.
 */
export const continuedTokens = 1024;

export class CrossScoring {
  private readonly network: Network;
  private readonly sessions: PackedSessions;
  /**
   * Sessions that score texts. They are separate from `sessions`, which process prompts, because the outputs of a
   * prompt's session are still in use while texts are scored.
   */
  private readonly continuing: PackedSessions;

  constructor(
    network: Network,
    private readonly bank: ParameterBank,
    options: SessionOptions,
  ) {
    // A text is also scored after the prompts of other episodes. Prompt and text together may therefore exceed the
    // maximum length of an episode, but not twice this length.
    this.network = {
      ...withoutDropout(network),
      maxPositions: 2 * (network.maxPositions ?? network.config.maxPositions),
    };
    this.sessions = new PackedSessions(this.network, options, false);
    this.continuing = this.sessions.withSameOptions();
  }

  /**
   * Returns the summed log-probs of all tokens of text i after prompt j under the current weights: [texts][prompts], in
   * nats. `budget` limits the tokens and texts per pass. Throws an Error for an empty text or prompt.
   */
  async sums(
    prompts: readonly Int32Array[],
    texts: readonly Int32Array[],
    { maxTokens, maxRows }: PassBudget,
    temperature: number,
    units = unwatched,
    pictures?: PromptPictures,
  ): Promise<Float64Array[]> {
    if ([...prompts, ...texts].some(({ length }) => length === 0))
      throw new Error('cross-scoring: every prompt and every text needs at least one token');
    const { config } = this.network;
    const columns = distinctPrompts(prompts, pictures);
    const rows = distinct(texts);
    const found = rows.values.map(() => new Float64Array(columns.values.length));
    const parts = cutTexts(rows.values, Math.min(maxTokens, continuedTokens), maxRows).map(part => ({
      part,
      ...textFeeds(
        part.map(i => rows.values[i]),
        config,
      ),
    }));
    const samples = columns.values;
    const total = columns.values.length * parts.length;
    let done = 0;
    for (const { shared, ...pass } of planPasses(samples, { maxTokens, maxRows }, passCosts(config))) {
      const packed = packPass({ shared, ...pass }, samples, config);
      const ends = packed.members.map((column, k) => packed.at(k, samples[column].ids.length - 1));
      const session = await this.sessions.get(
        'prefixes',
        { shared, pictures: packed.pictures && 'shown', chunks: 1 },
        prefixGraph,
        passSize(packed.feeds, config),
      );
      const shown = packed.pictures ? pictureFeeds(packed.pictures, config) : {};
      const read = await session.run({
        ...this.bank.feeds(),
        ...packed.feeds,
        ...shown,
        ...featureFeeds(shown, pictures?.features),
        ends: indices(ends),
      });
      for (const [k, column] of packed.members.entries()) {
        const { ids, pictures: own } = samples[column];
        const { length } = ids;
        const next = own ? maximum([...own.positions]) + 1 : length;
        const prefix = prefixFeeds(read, k, length, position => packed.at(k, position), config);
        for (const { part, ...feeds } of parts) {
          units.next(done++, total);
          const logprobs = await this.scoreSuffixes(prefix, next, feeds, temperature);
          let n = 0;
          for (const i of part)
            for (const end = n + rows.values[i].length; n < end; n++) found[i][column] += logprobs[n];
        }
      }
    }
    return rows.index.map(i => Float64Array.from(columns.index, j => found[i][j]));
  }

  /**
   * Scores the texts of one pass after a prompt; `next` is the position of their first token. Returns the log-probs of
   * all their tokens.
   */
  private async scoreSuffixes(
    prefix: Record<string, Tensor>,
    next: number,
    { feeds, offsets, count }: TextFeeds,
    temperature: number,
  ): Promise<Float32Array> {
    const chunks = headChunks(count, this.network.config.vocabSize);
    const session = await this.continuing.get(`suffixes ${chunks}`, { shared: true, chunks }, suffixGraph);
    const positions = BigInt64Array.from(offsets, offset => BigInt(next + offset));
    const { logprob } = await session.run({
      ...this.bank.feeds(),
      ...prefix,
      ...feeds,
      positions: int64(positions, [positions.length]),
      ...chunkFeeds(count, chunks),
      ...scalarFeeds({ inverse_temperature: 1 / temperature }),
    });
    return logprob.data as Float32Array;
  }
}

/** What prompts show: the features of all pictures, [features, width], and what each prompt shows of them. */
export interface PromptPictures {
  features: Tensor;
  shown: readonly (ShownFeatures | undefined)[];
}

/** Prompts are equal only if they show the same features. */
function distinctPrompts(
  prompts: readonly Int32Array[],
  pictures: PromptPictures | undefined,
): { values: { ids: Int32Array; pictures?: ShownFeatures | undefined }[]; index: number[] } {
  const keys = prompts.map((ids, i) => {
    const shown = pictures?.shown[i];
    return shown ? Int32Array.from([...ids, ...shown.features]) : ids;
  });
  const { index } = distinct(keys);
  const values: { ids: Int32Array; pictures?: ShownFeatures | undefined }[] = [];
  index.forEach((number, i) => (values[number] ??= { ids: prompts[i], pictures: pictures?.shown[i] }));
  return { values, index };
}

/** Returns the distinct values, and the index of each input among them. */
function distinct(all: readonly Int32Array[]): { values: Int32Array[]; index: number[] } {
  const numbers = new Map<string, number>();
  const values: Int32Array[] = [];
  const index = all.map(ids => {
    const key = ids.join();
    const number = numbers.get(key) ?? values.push(ids) - 1;
    numbers.set(key, number);
    return number;
  });
  return { values, index };
}

/** Splits text indices into parts. Each part fits into one pass and contains texts of similar length. */
function cutTexts(texts: readonly Int32Array[], maxTokens: number, maxRows: number): number[][] {
  const parts: number[][] = [];
  let tokens = Infinity;
  for (const i of [...texts.keys()].sort((a, b) => texts[b].length - texts[a].length || a - b)) {
    if (tokens + texts[i].length > maxTokens || parts.at(-1)!.length >= maxRows) {
      parts.push([]);
      tokens = 0;
    }
    parts.at(-1)!.push(i);
    tokens += texts[i].length;
  }
  return parts;
}

/**
 * Returns the feeds for the k-th prompt of a pass: its keys and values as blocks [kvHeads, u, headSize], and its last
 * hidden state.
 */
function prefixFeeds(
  read: Readonly<Record<string, Tensor>>,
  k: number,
  length: number,
  at: (position: number) => number,
  { kvHeads, headSize, hiddenSize, layers }: DecoderConfig,
): Record<string, Tensor> {
  const rows = Array.from({ length }, (_, position) => at(position) * kvHeads);
  const block = (name: string): Tensor => {
    const all = read[name].data as Float32Array;
    const out = new Float32Array(length * kvHeads * headSize);
    let next = 0;
    for (let h = 0; h < kvHeads; h++)
      for (const row of rows) {
        const from = (row + h) * headSize;
        out.set(all.subarray(from, from + headSize), next);
        next += headSize;
      }
    return float32(out, [kvHeads, length, headSize]);
  };
  const feeds: Record<string, Tensor> = {};
  for (let i = 0; i < layers; i++) {
    feeds[`beginning_key.${i}`] = block(`key.${i}`);
    feeds[`beginning_value.${i}`] = block(`value.${i}`);
  }
  const last = (read.last.data as Float32Array).subarray(k * hiddenSize, (k + 1) * hiddenSize);
  return { ...feeds, before: float32(last, [1, hiddenSize]) };
}

/**
 * The packed tokens of several texts, without data that depend on the prompt. `count` is the number of tokens of all
 * texts.
 */
interface TextFeeds {
  /** Feeds of suffixGraph that depend only on the texts; positions depend on the prompt too and are not included. */
  feeds: Record<string, Tensor>;
  /** Position of each packed token within its text. */
  offsets: number[];
  count: number;
}

function textFeeds(texts: readonly Int32Array[], c: DecoderConfig): TextFeeds {
  const t = maximum(texts.map(({ length }) => length));
  const count = texts.reduce((sum, { length }) => sum + length, 0);
  const places = new Int32Array(texts.length * t).fill(-1);
  // A dummy token fills empty slots. A single token is also followed by a dummy token, because onnxruntime computes
  // matmuls of a single row with another kernel, which rounds differently.
  const n = places.length > count || count === 1 ? count + 1 : count;
  const ids = new Array<number>(n).fill(0);
  const offsets = new Array<number>(n).fill(0);
  const rows: number[] = [];
  let at = 0;
  texts.forEach((text, m) =>
    text.forEach((id, i) => {
      places[m * t + i] = at;
      rows.push(i === 0 ? n : at - 1); // index n is the prompt's last token, after all text tokens
      ids[at] = id;
      offsets[at++] = i;
    }),
  );
  const groups = c.heads / c.kvHeads;
  const layout = [{ places, outer: 1, inner: texts.length, length: t }];
  const queries = headIndex(layout, n, count, c.kvHeads, groups);
  const keys = headIndex(layout, n, count, c.kvHeads, 1);
  const blocks = [c.kvHeads, texts.length];
  const byHead = new Int32Array(n * c.heads);
  const headsBack = new Int32Array(n * c.heads);
  for (let query = 0; query < n * c.heads; query++) {
    const head = query % c.heads;
    const row = (Math.floor(head / groups) * n + Math.floor(query / c.heads)) * groups + (head % groups);
    byHead[row] = query;
    headsBack[query] = row;
  }
  return {
    count,
    offsets,
    feeds: {
      ids: indices(ids),
      by_head: int32(byHead, [c.kvHeads, n * groups]),
      heads_back: int32(headsBack, [n * c.heads]),
      query_blocks: int32(queries.forward[0], [...blocks, groups * t]),
      key_blocks: int32(keys.forward[0], [...blocks, t]),
      own_rows: int32(
        queries.forward[0].map(query => headsBack[query]),
        [...blocks, groups * t],
      ),
      own_places: int32(
        byHead.map(query => queries.back[query]),
        [c.kvHeads, n * groups],
      ),
      own_mask: stackedCausalMask(groups, t),
      rows: indices(rows),
      targets: indices(ids.slice(0, count)),
    },
  };
}

/** Returns the additive mask [groups·t, t]: query i of each group attends to tokens 0…i. */
function stackedCausalMask(groups: number, t: number): Tensor {
  const data = new Float32Array(groups * t * t);
  for (let row = 0; row < groups * t; row++) data.fill(masked, row * t + (row % t) + 1, (row + 1) * t);
  return float32(data, [groups * t, t]);
}

const indices = (all: readonly number[]): Tensor => int64(BigInt64Array.from(all, BigInt), [all.length]);
