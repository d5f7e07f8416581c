// What the vision encoders of all families have in common.

export interface EncoderShape {
  layers: number;
  hiddenSize: number;
  intermediateSize: number;
  heads: number;
  headSize: number;
  /** Side of a patch in pixels. */
  patchSize: number;
  /** Number of times that a picture is repeated in its patches. */
  temporalPatchSize: number;
  /** Patches along each side of the square that is merged into one image feature. */
  mergeSize: number;
  /** The decoder's hidden size. */
  outputSize: number;
  normEps: number;
}

/** Number of values of a patch. */
export const patchWidth = (c: Pick<EncoderShape, 'patchSize' | 'temporalPatchSize'>): number =>
  3 * c.temporalPatchSize * c.patchSize ** 2;
