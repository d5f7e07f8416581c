// Text embeddings by an ONNX model such as E5 or BGE. The folder contains tokenizer.json and model.onnx (or
// onnx/model.onnx). The model's first output is the last hidden state per token, or a pooled embedding. Hidden states
// are pooled as 1_Pooling/config.json specifies, by default as the mean over tokens. Embeddings are normalized to unit
// length. The model runs on the CPU.
import { Tokenizer } from '@huggingface/tokenizers';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { MissingDependency } from '../api/environment';
import { readRegularText } from '../api/regular-file';

/** Maximum tokens per text: the number of positions in BERT. The tokenizer's configuration may set a lower limit. */
const mostTokens = 512;
/** Maximum tokens per batch, including padding. */
const tokensAtATime = 4096;

const remedy =
  'set env_config.embedding_model to a folder with tokenizer.json and model.onnx (or onnx/model.onnx), or to null to rank by words';

export class TextEmbedder {
  private constructor(
    private readonly session: InferenceSession,
    private readonly makeTensor: (data: BigInt64Array, dims: number[]) => Tensor,
    private readonly tokenizer: Tokenizer,
    private readonly limit: number,
    private readonly pooling: 'mean' | 'first',
  ) {}

  /** @throws MissingDependency if the folder does not contain a usable model */
  static async open(folder: string): Promise<TextEmbedder> {
    const model = ['model.onnx', 'onnx/model.onnx'].map(name => join(folder, name)).find(existsSync);
    if (model === undefined || !existsSync(join(folder, 'tokenizer.json')))
      throw new MissingDependency(`cannot find an embedding model in ${folder}`, remedy);
    const json = (name: string): Record<string, unknown> =>
      existsSync(join(folder, name)) ? (JSON.parse(readRegularText(join(folder, name))) as never) : {};
    try {
      const settings = json('tokenizer_config.json');
      const tokenizer = new Tokenizer(json('tokenizer.json'), settings);
      const limit = Math.min(Number(settings.model_max_length ?? mostTokens), mostTokens);
      const ort = await import('onnxruntime-node');
      // One thread, because the trainer needs the other cores.
      const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1 });
      const pooling = json('1_Pooling/config.json').pooling_mode_cls_token === true ? 'first' : 'mean';
      const makeTensor = (data: BigInt64Array, dims: number[]) => new ort.Tensor('int64', data, dims);
      return new TextEmbedder(session, makeTensor, tokenizer, limit, pooling);
    } catch (error) {
      throw new MissingDependency(`cannot use the embedding model in ${folder} (${(error as Error).message})`, remedy);
    }
  }

  /** Unit-length embeddings, in the order of the texts. */
  async embed(texts: readonly string[]): Promise<Float32Array[]> {
    const ids = texts.map(text => this.encode(text));
    const found: Float32Array[] = texts.map(() => new Float32Array());
    // Texts of similar length are put into the same batch, because such a batch needs less padding.
    const byLength = [...ids.keys()].sort((a, b) => ids[b].length - ids[a].length);
    for (let from = 0; from < byLength.length;) {
      const rows = Math.max(1, Math.floor(tokensAtATime / ids[byLength[from]].length));
      const part = byLength.slice(from, (from += rows));
      const embedded = await this.embedRows(part.map(i => ids[i]));
      part.forEach((i, row) => (found[i] = embedded[row]));
    }
    return found;
  }

  /** Returns the token ids of a text. A text that is too long is truncated; its final token is kept. */
  private encode(text: string): number[] {
    let ids: number[];
    try {
      ({ ids } = this.tokenizer.encode(text));
    } catch {
      ids = []; // the library reports an unusable tokenizer.json only at this point
    }
    if (ids.length === 0 || !ids.every(Number.isSafeInteger))
      throw new MissingDependency('has an embedding model whose tokenizer.json produces no token ids', remedy);
    return ids.length > this.limit ? [...ids.slice(0, this.limit - 1), ids.at(-1)!] : ids;
  }

  private async embedRows(rows: readonly number[][]): Promise<Float32Array[]> {
    const width = rows[0].length; // the first row is the longest
    const filled = (value: (row: readonly number[], t: number) => number): Tensor => {
      const data = new BigInt64Array(rows.length * width);
      rows.forEach((row, r) => row.forEach((_, t) => (data[r * width + t] = BigInt(value(row, t)))));
      return this.makeTensor(data, [rows.length, width]);
    };
    const inputs: Record<string, () => Tensor> = {
      input_ids: () => filled((row, t) => row[t]),
      attention_mask: () => filled(() => 1),
      token_type_ids: () => filled(() => 0),
    };
    const feeds = Object.fromEntries(this.session.inputNames.map(name => [name, inputs[name]?.()]));
    const output = (await this.session.run(feeds))[this.session.outputNames[0]];
    const data = output.data as Float32Array;
    const size = output.dims.at(-1)!;
    return rows.map((row, r) => {
      if (output.dims.length === 2) return unit(data.slice(r * size, (r + 1) * size));
      const read = this.pooling === 'first' ? 1 : row.length;
      const sum = new Float32Array(size);
      for (let t = 0; t < read; t++) for (let k = 0; k < size; k++) sum[k] += data[(r * width + t) * size + k];
      return unit(sum);
    });
  }
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return length > 0 ? vector.map(x => x / length) : vector;
}
