// The generator's cache on the host: implements the interface of generation-cache.ts with key-value-cache.ts. Past keys
// and values are fed to each run, and new ones are copied into the row's arrays. A step never has a single row, because
// onnxruntime computes matmuls of a single row with another kernel, which rounds differently.
import { maximum } from '../../common/lists';
import { float32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { Chunk, DecodingBatch, GenerationCache, RunGenerate } from './generation-cache';
import { BatchCache, RowCache, appendChunks, block, joinedPast, pastFeeds } from './key-value-cache';
import { packAppended, packChunks } from '../graphs/chunk-packing';
import { endOf, picturedFeeds, picturedPart } from './pictured-chunks';
import type { PicturedChunk } from './pictured-chunks';

/** New ids of one row. */
interface Piece extends PicturedChunk {
  cache: RowCache;
}

/**
 * Maximum tokens per append; longer chunks are split. With this limit, the memory and time for attention scores are
 * proportional to the row length. Without the limit, they would be proportional to the square of the row length. On two
 * cores, the limit makes the prefill of four prompts with 1465 tokens each 3 to 6 times as fast. Lower limits are not
 * faster.
 */
export const pieceTokens = 512;

export class HostCache implements GenerationCache {
  /**
   * `run` runs the generate graph. `runAppend` runs the append graph; if it is omitted, the generate graph also appends
   * chunks. `runPictured` runs the append graph of tokens that show pictures.
   */
  constructor(
    private readonly config: DecoderConfig,
    private readonly run: RunGenerate,
    private readonly runPictured: RunGenerate,
    private readonly runAppend?: RunGenerate,
  ) {}

  row(): RowCache {
    return new RowCache(this.config);
  }

  async prefill(chunks: readonly (Chunk & { rows: readonly RowCache[] })[]): Promise<Tensor> {
    const vocab = this.config.vocabSize;
    const last = new Float32Array(chunks.length * vocab);
    const longest = maximum(chunks.map(({ ids }) => ids.length));
    for (let from = 0; from < longest; from += pieceTokens) {
      const to = from + pieceTokens;
      const pieces = chunks.flatMap(({ ids, rows, pictures }, chunk) =>
        ids.length > from
          ? { chunk, cache: rows[0], ids: ids.slice(from, to), pictures: pictures && picturedPart(pictures, from, to) }
          : [],
      );
      const logits = (await this.append(pieces)).data as Float32Array;
      pieces.forEach(({ chunk }, r) => last.set(logits.subarray(r * vocab, (r + 1) * vocab), chunk * vocab));
    }
    for (const { rows } of chunks) for (const row of rows) if (row !== rows[0]) row.copyFrom(rows[0]);
    return spreadRows(
      float32(last, [chunks.length, vocab]),
      chunks.flatMap(({ rows }, r) => rows.map(() => r)),
    );
  }

  /** Appends ids to rows and returns the logits after the last id of each row. */
  private async append(pieces: readonly Piece[]): Promise<Tensor> {
    const { config, runAppend } = this;
    const caches = pieces.map(({ cache }) => cache);
    const chunks = pieces.map(({ ids }) => ids);
    const counts = chunks.map(({ length }) => length);
    const firsts = caches.map(({ nextPosition }) => nextPosition);
    const pasts = caches.map(({ length }) => length);
    const pictured = pieces.some(({ pictures }) => pictures);
    if (runAppend || pictured) {
      const { feeds, starts } = packAppended(chunks, pasts, block, config, firsts);
      const run = pictured ? this.runPictured : runAppend!;
      const shown = pictured ? picturedFeeds(pieces, feeds, config) : {};
      const outputs = await run({ ...joinedPast(caches, config), ...feeds, ...shown });
      appendChunks(caches, outputs, starts, counts);
      for (const { cache, pictures } of pieces) if (pictures) cache.shift = endOf(pictures) - cache.length;
      return outputs.logits;
    }
    const packed = packChunks(chunks, firsts, block, config);
    const ends = packed.starts.map((start, r) => start + counts[r] - 1);
    const outputs = await this.run({ ...pastFeeds(caches, config), ...packed.feeds, rows: wantedRows(ends) });
    appendChunks(caches, outputs, packed.starts, counts);
    return outputs.logits;
  }

  batch(): DecodingBatch {
    const batch = new BatchCache(this.config);
    return {
      enter: async rows => batch.enter(rows as readonly RowCache[]),
      step: async tokens => {
        const chunks = tokens.map(token => [token]);
        const packed = packChunks(chunks, batch.positions, 1, this.config);
        const outputs = await this.run({ ...batch.feeds(), ...packed.feeds, rows: wantedRows(packed.starts) });
        batch.append(outputs);
        return tokens.length === 1 ? spreadRows(outputs.logits, [0]) : outputs.logits;
      },
      releaseRow: r => batch.releaseRow(r),
      settle: async () => undefined,
      close: async () => undefined,
    };
  }

  forget(): void {
    // Nothing needs to be freed, because the arrays belong to the row object.
  }
}

/**
 * Returns the indices of the tokens whose logits are needed. A single index is duplicated, because onnxruntime computes
 * matmuls of a single row with another kernel, which rounds differently.
 */
function wantedRows(tokens: readonly number[]): Tensor {
  const rows = tokens.length === 1 ? [tokens[0], tokens[0]] : tokens;
  return int64(BigInt64Array.from(rows, BigInt), [rows.length]);
}

/** Returns the rows of `logits` at the given indices. An index occurs several times if several rows share a prompt. */
function spreadRows(logits: Tensor, rows: readonly number[]): Tensor {
  if (rows.length === logits.dims[0] && rows.every((r, i) => r === i)) return logits;
  const vocab = logits.dims[1];
  const data = new Float32Array(rows.length * vocab);
  rows.forEach((r, i) => data.set((logits.data as Float32Array).subarray(r * vocab, (r + 1) * vocab), i * vocab));
  return { ...logits, dims: [rows.length, vocab], data };
}
