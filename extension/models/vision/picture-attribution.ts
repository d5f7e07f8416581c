// How much the log-prob of an answer depends on each part of a picture: gradient × input of the image features that the
// decoder reads (Shrikumar et al. 2016, arXiv 1605.01713), with the L2 norm over the channels, which the comparison of
// Atanasova et al. (2020, arXiv 2009.13295, §4) finds better than the sum, because channels of different signs cancel.
// DeepStack features are channels as the others, so their part counts too.
import type { AttributionMap } from '../../engine/training-samples';
import type { TileGrid } from './tiles';

/** How the features of a picture are laid out; the features of a part are consecutive, row by row. */
export interface FeatureLayout {
  /** Rows and columns of features of each part: of the picture, or of each of its tiles; the last tile is the complete picture. */
  parts: readonly { rows: number; columns: number }[];
  /** The tiles along each side of the picture; both are 0 if it has only one part. */
  tiles: TileGrid;
}

/**
 * Returns the map of each picture. The value of a cell is ‖∂ log p / ∂f ⊙ f‖ of its feature f, in nats: the standard
 * deviation of the log-prob, in first order, if each channel of f changes by a random share of itself with a standard
 * deviation of 1. The cells of a picture in tiles are those of the tiles; the square of a cell of the complete picture is
 * divided equally among the cells that it covers, so the sum of the squares is that of all features.
 * @param layouts of the pictures, in the order of their features
 * @param features, gradient [features, width]
 */
export function attributionMaps(
  layouts: readonly FeatureLayout[],
  features: Float32Array,
  gradient: Float32Array,
  width: number,
): AttributionMap[] {
  let feature = 0;
  const norms = (count: number): Float32Array => {
    const values = Float32Array.from({ length: count }, (_, i) => {
      let sum = 0;
      for (let at = (feature + i) * width; at < (feature + i + 1) * width; at++)
        sum += (features[at] * gradient[at]) ** 2;
      return Math.sqrt(sum);
    });
    feature += count;
    return values;
  };
  return layouts.map(({ parts, tiles }) => {
    const found = parts.map(({ rows, columns }) => ({ rows, columns, values: norms(rows * columns) }));
    return tiles.rows * tiles.columns === 0 ? found[0] : joinedTiles(found, tiles);
  });
}

/** Joins the maps of tiles, row by row, and of the complete picture, which is the last. */
function joinedTiles(parts: readonly AttributionMap[], tiles: TileGrid): AttributionMap {
  const complete = parts[parts.length - 1];
  const [rows, columns] = [tiles.rows * complete.rows, tiles.columns * complete.columns];
  const values = new Float32Array(rows * columns);
  const share = 1 / (tiles.rows * tiles.columns);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const tile = parts[Math.floor(row / complete.rows) * tiles.columns + Math.floor(column / complete.columns)];
      const own = tile.values[(row % complete.rows) * complete.columns + (column % complete.columns)];
      const covering = Math.floor(row / tiles.rows) * complete.columns + Math.floor(column / tiles.columns);
      values[row * columns + column] = Math.sqrt(own ** 2 + share * complete.values[covering] ** 2);
    }
  return { rows, columns, values };
}
