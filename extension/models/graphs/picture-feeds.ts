// Inputs of packed tokens that show image features, and their feeds: which feature replaces each token's embedding, and
// the rotation of each token by its position, which has several axes in some models (M-RoPE).
import type { Graph, Value } from '../../engine/graph/graph';
import { neg } from '../../engine/graph/ops';
import { float32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { ShownFeatures } from '../../engine/training-samples';
import type { PictureInputs } from '../decoder/decoder';
import type { DecoderConfig } from '../decoder/decoder-config';
import { rotaryRows } from '../decoder/rotary-frequencies';
import type { RotaryShape } from '../decoder/rotary-frequencies';

/** Name of the graph input with the image features, [features, hidden · (1 + deepFeatures)]. */
export const featuresInput = 'features';
const indicesInput = 'feature_indices';
const shownInput = 'feature_shown';

/** Declares the inputs of tokens that show image features; `tokens` is the symbol of the packed tokens. */
export function pictureInputs(g: Graph, c: DecoderConfig): PictureInputs {
  const perToken = (name: string, width: number): Value => g.input(name, 'float32', ['tokens', width]);
  const [cos, sin] = [perToken('rotary_cos', c.headSize / 2), perToken('rotary_sin', c.headSize / 2)];
  return {
    features: g.input(featuresInput, 'float32', ['features', c.hiddenSize * (1 + (c.deepFeatures ?? 0))]),
    indices: g.input(indicesInput, 'int64', ['tokens']),
    shown: perToken(shownInput, 1),
    rotation: { cos, sin, sinNegated: neg(g, sin) },
  };
}

/** Returns the feeds of `pictureInputs`, except the features. */
export function pictureFeeds({ features, positions }: ShownFeatures, shape: RotaryShape): Record<string, Tensor> {
  const n = features.length;
  const { cos, sin } = rotaryRows(shape, positions);
  return {
    rotary_cos: float32(cos, [n, shape.headSize / 2]),
    rotary_sin: float32(sin, [n, shape.headSize / 2]),
    [indicesInput]: int64(
      BigInt64Array.from(features, index => BigInt(Math.max(0, index))),
      [n],
    ),
    [shownInput]: float32(
      Float32Array.from(features, index => Number(index >= 0)),
      [n, 1],
    ),
  };
}

/**
 * Returns the features that the tokens of a pass show, and their indices; nothing if the pass shows none.
 * @param feeds those of `pictureFeeds`, with indices into `values`
 * @param values features of all pictures of the call, [features, width], on the host
 */
export function featureFeeds(
  { [indicesInput]: indices, [shownInput]: shown }: Readonly<Record<string, Tensor | undefined>>,
  values: Tensor | undefined,
): Record<string, Tensor> {
  if (!values || !indices || !shown) return {};
  const all = values.data as Float32Array;
  const [given, isShown] = [indices.data as BigInt64Array, shown.data as Float32Array];
  const width = values.dims[1];
  const rows = shownRows(given, isShown);
  const own = given.map((index, t) => (isShown[t] === 0 ? 0n : BigInt(rows.get(Number(index))!)));
  const matrix = new Float32Array(Math.max(1, rows.size) * width);
  for (const [index, row] of rows) matrix.set(all.subarray(index * width, (index + 1) * width), row * width);
  return {
    [indicesInput]: int64(own, [own.length]),
    [featuresInput]: float32(matrix, [matrix.length / width, width]),
  };
}

/**
 * Adds the gradient of the features that a pass shows to that of all features.
 * @param feeds those of `pictureFeeds`
 * @param sum [features, width]
 * @param gradient of the features in the rows of `featureFeeds`, [rows, width]
 */
export function addFeatureGradient(
  { [indicesInput]: indices, [shownInput]: shown }: Readonly<Record<string, Tensor>>,
  sum: Float32Array,
  gradient: Tensor,
): void {
  const [data, width] = [gradient.data as Float32Array, gradient.dims[1]];
  for (const [index, row] of shownRows(indices.data as BigInt64Array, shown.data as Float32Array))
    for (let i = 0; i < width; i++) sum[index * width + i] += data[row * width + i];
}

/** Returns the row of each feature that a pass shows, by the feature's index, in the order of the tokens. */
function shownRows(indices: BigInt64Array, shown: Float32Array): Map<number, number> {
  const rows = new Map<number, number>();
  indices.forEach((index, t) => {
    if (shown[t] !== 0 && !rows.has(Number(index))) rows.set(Number(index), rows.size);
  });
  return rows;
}
