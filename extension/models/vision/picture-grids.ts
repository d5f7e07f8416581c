// The patch grids into which a model divides a picture of a given size: one grid per picture, or one per tile. Nothing is
// decoded, so the image tokens of a picture are known from its size alone.
import type { EncoderConfig } from './encoder-config';
import { featureCount } from './encoder-feeds';
import { patchGrid } from './patches';
import type { PatchGrid } from './patches';
import type { ProcessorOptions } from './processor-options';
import { tileGrid } from './tiles';

/**
 * Returns the patch grids of a picture, in the order of their image tokens.
 * @throws PictureError if the model cannot read a picture of this size
 */
export function pictureGrids(
  { width, height }: { width: number; height: number },
  encoder: EncoderConfig,
  options: ProcessorOptions,
): PatchGrid[] {
  if (options.kind === 'patches') return [patchGrid(width, height, options)];
  if (encoder.kind !== 'siglip') throw new Error('pictures: an encoder of tiles must be SigLIP');
  const { rows, columns } = tileGrid({ width, height }, options);
  return Array.from({ length: rows * columns + 1 }, () => ({ rows: encoder.side, columns: encoder.side }));
}

/** Returns the number of image tokens of the patch grids of a picture. */
export const gridTokens = (grids: readonly PatchGrid[], encoder: Pick<EncoderConfig, 'mergeSize'>): number =>
  grids.reduce((sum, grid) => sum + featureCount(grid, encoder), 0);
