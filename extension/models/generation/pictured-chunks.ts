// Chunks of new tokens that show pictures, as feeds of the append graph.
import type { PicturedTokens } from '../../engine/generation-calls';
import { float32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecoderConfig } from '../decoder/decoder-config';
import { featuresInput, pictureFeeds } from '../graphs/picture-feeds';

export interface PicturedChunk {
  ids: readonly number[];
  pictures?: PicturedTokens;
  cache: { readonly nextPosition: number };
}

/** Returns what the tokens from `from` to `to` show. */
export function picturedPart(
  { values, features, positions }: PicturedTokens,
  from: number,
  to: number,
): PicturedTokens {
  const n = features.length;
  const part = features.subarray(from, to);
  const length = part.length;
  const own = new Int32Array(3 * length);
  for (let axis = 0; axis < 3; axis++)
    own.set(positions.subarray(axis * n + from, axis * n + from + length), axis * length);
  return { values, features: part, positions: own };
}

/** Returns `pictures` with one text token at `position` before them. */
export function afterToken({ values, features, positions }: PicturedTokens, position: number): PicturedTokens {
  const n = features.length;
  const longer = { values, features: new Int32Array(n + 1).fill(-1), positions: new Int32Array(3 * (n + 1)) };
  longer.features.set(features, 1);
  for (let axis = 0; axis < 3; axis++) {
    longer.positions[axis * (n + 1)] = position;
    longer.positions.set(positions.subarray(axis * n, (axis + 1) * n), axis * (n + 1) + 1);
  }
  return longer;
}

/** Returns the position of the token that follows; text and the longer sides of pictures take one position each. */
export const endOf = ({ positions }: PicturedTokens): number =>
  positions.reduce((largest, position) => Math.max(largest, position), -1) + 1;

/**
 * Returns the feeds by which tokens show image features, and the positions of the append graph, which are indices of
 * tokens. `feeds` are those of packAppended for the same chunks.
 */
export function picturedFeeds(
  chunks: readonly PicturedChunk[],
  feeds: Readonly<Record<string, Tensor>>,
  config: DecoderConfig,
): Record<string, Tensor> {
  const n = feeds.ids.dims[0];
  const width = config.hiddenSize * (1 + (config.deepFeatures ?? 0));
  const features = new Int32Array(n).fill(-1); // a dummy token may follow the chunks
  const positions = new Int32Array(3 * n);
  const values: Float32Array[] = [];
  let [at, rows] = [0, 0];
  for (const { ids, pictures, cache } of chunks) {
    for (let i = 0; i < ids.length; i++) {
      const feature = pictures?.features[i] ?? -1;
      if (feature >= 0) features[at + i] = rows + feature;
      for (let axis = 0; axis < 3; axis++)
        positions[axis * n + at + i] = pictures?.positions[axis * ids.length + i] ?? cache.nextPosition + i;
    }
    at += ids.length;
    if (!pictures) continue;
    values.push(pictures.values);
    rows += pictures.values.length / width;
  }
  const matrix = new Float32Array(rows * width);
  let to = 0;
  for (const part of values) {
    matrix.set(part, to);
    to += part.length;
  }
  return {
    ...pictureFeeds({ features, positions }, config),
    [featuresInput]: float32(matrix, [rows, width]),
    positions: int64(
      BigInt64Array.from({ length: n }, (_, i) => BigInt(i)),
      [n],
    ),
    last_positions: feeds.last_tokens,
  };
}
