// Parses the options of a model's image processor: preprocessor_config.json, or the section image_processor of
// processor_config.json, in which transformers 5 writes it. A missing option has the default of the processor's class
// in transformers 5. An option that changes pixels and is not supported is rejected by its name.
import { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import type { Filter } from './resample';

const qwenTypes = ['Qwen2VLImageProcessor', 'Qwen2VLImageProcessorFast', 'Qwen2VLImageProcessorPil'];
const tileTypes = ['Idefics3', 'SmolVLM'].flatMap(name =>
  ['', 'Fast', 'Pil'].map(backend => `${name}ImageProcessor${backend}`),
);

/** How pixels become numbers: (pixel · rescaleFactor − mean) / std, per channel. */
export interface Normalization {
  rescaleFactor: number;
  /** [3] each */
  mean: readonly number[];
  std: readonly number[];
}

/** Options of the processor of Qwen2-VL, Qwen2.5-VL and Qwen3-VL. */
export interface PatchOptions extends Normalization {
  kind: 'patches';
  filter: Filter;
  minPixels: number;
  maxPixels: number;
  patchSize: number;
  temporalPatchSize: number;
  mergeSize: number;
}

/** Options of the processors of Idefics3 and SmolVLM. */
export interface TileOptions extends Normalization {
  kind: 'tiles';
  filter: Filter;
  /** Length of the longer side after the first resize. */
  longestEdge: number;
  /** Side of a tile. */
  tileSize: number;
  /** Whether a picture is split into tiles. Otherwise, it is resized to one tile. */
  isSplit: boolean;
}

export type ProcessorOptions = PatchOptions | TileOptions;

const positive = z.number().int().positive();
const three = z.array(z.number()).length(3);
const edges = z.strictObject({ shortest_edge: positive.nullish(), longest_edge: positive.nullish() });
/** Options with a value that has no effect on one picture, or that names the processor. */
const without = {
  image_processor_type: z.string(),
  feature_extractor_type: z.unknown().optional(),
  processor_class: z.unknown().optional(),
  _processor_class: z.unknown().optional(),
  data_format: z.literal('channels_first').nullish(),
  input_data_format: z.null().optional(),
  device: z.unknown().optional(),
  disable_grouping: z.unknown().optional(),
  return_tensors: z.unknown().optional(),
  default_to_square: z.unknown().optional(),
  do_center_crop: z.literal(false).nullish(),
  crop_size: z.null().optional(),
  pad_size: z.null().optional(),
  image_seq_length: z.unknown().optional(),
};
const shared = {
  ...without,
  do_convert_rgb: z.literal(true).nullish(),
  do_resize: z.literal(true).nullish(),
  do_rescale: z.literal(true).nullish(),
  do_normalize: z.literal(true).nullish(),
  rescale_factor: z.number().positive().nullish(),
  image_mean: three.nullish(),
  image_std: three.refine(std => std.every(x => x > 0), 'must be positive').nullish(),
  resample: z.union([z.literal(1), z.literal(2), z.literal(3)]).nullish(),
};
const patchSchema = z.strictObject({
  ...shared,
  do_pad: z.literal(false).nullish(),
  size: edges.nullish(),
  min_pixels: positive.nullish(),
  max_pixels: positive.nullish(),
  patch_size: positive.nullish(),
  temporal_patch_size: positive.nullish(),
  merge_size: positive.nullish(),
});
/** Above this length of a side, transformers' Idefics3 processor resizes a picture once more. */
const maxTiledSide = 4096;
const tileSchema = z.strictObject({
  ...shared,
  /** Tiles of one picture have equal sizes, so there is nothing to pad. */
  do_pad: z.boolean().nullish(),
  do_image_splitting: z.boolean().nullish(),
  max_image_size: z.strictObject({ longest_edge: positive.max(maxTiledSide) }).nullish(),
  size: z.strictObject({ longest_edge: positive.max(maxTiledSide) }).nullish(),
  return_row_col_info: z.unknown().optional(),
  /** Options of videos. */
  video_sampling: z.unknown().optional(),
});

const filters: Readonly<Record<number, Filter>> = { 1: 'lanczos', 2: 'bilinear', 3: 'bicubic' };
const clipMean = [0.48145466, 0.4578275, 0.40821073];
const clipStd = [0.26862954, 0.26130258, 0.27577711];
const half = [0.5, 0.5, 0.5];

/**
 * Parses the content of a preprocessor_config.json. `file` is used only in errors.
 * @throws UserError that names the option
 */
export function parseProcessorOptions(json: unknown, file: string): ProcessorOptions {
  const type = isRecord(json) ? json.image_processor_type : undefined;
  if (qwenTypes.some(known => known === type)) return patchOptions(checked(patchSchema, json, file), file);
  if (tileTypes.some(known => known === type)) return tileOptions(checked(tileSchema, json, file));
  throw new UserError(
    `${file}: image_processor_type is ${JSON.stringify(type)}, which is not supported: use a Qwen2.5-VL, Qwen3-VL, Idefics3 or SmolVLM model`,
  );
}

/** Limits of a picture's size in pixels (`data.min_pixels`, `data.max_pixels`); null or undefined for the model's own. */
export interface PixelLimits {
  minPixels?: number | null;
  maxPixels?: number | null;
}

/**
 * Returns the options with the given limits. In models with tiles, the longer side is set so that a square picture has
 * at most `maxPixels`, in whole tiles.
 * @throws UserError if the limits contradict each other or the model has no such limit
 */
export function withPixels(options: ProcessorOptions, { minPixels, maxPixels }: PixelLimits): ProcessorOptions {
  if (options.kind === 'tiles') {
    if (typeof minPixels === 'number')
      throw new UserError(
        'config: data.min_pixels is set, but the model cuts pictures into tiles and enlarges each of them anyway: set data.min_pixels=null',
      );
    if (typeof maxPixels !== 'number') return options;
    const { longestEdge, tileSize } = options;
    const edge = Math.max(1, Math.floor(Math.sqrt(maxPixels) / tileSize)) * tileSize;
    return { ...options, longestEdge: Math.min(longestEdge, edge) };
  }
  const limits = { minPixels: minPixels ?? options.minPixels, maxPixels: maxPixels ?? options.maxPixels };
  if (limits.minPixels > limits.maxPixels)
    throw new UserError(
      `config: pictures have at least ${limits.minPixels} pixels (data.min_pixels, or the model's default) and at most ${limits.maxPixels} (data.max_pixels, or the model's default): lower data.min_pixels or raise data.max_pixels`,
    );
  return { ...options, ...limits };
}

function checked<T>(schema: z.ZodType<T>, json: unknown, file: string): T {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const key = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]] : issue.path;
  const value = key.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown> | null)?.[part], json);
  throw new UserError(
    `${file}: ${key.join('.')} is ${JSON.stringify(value)}, which is not supported: use a model whose processor has the default of this option`,
  );
}

function patchOptions(c: z.infer<typeof patchSchema>, file: string): PatchOptions {
  const minPixels = c.min_pixels ?? c.size?.shortest_edge ?? (c.size ? undefined : 56 * 56);
  const maxPixels = c.max_pixels ?? c.size?.longest_edge ?? (c.size ? undefined : 28 * 28 * 1280);
  if (minPixels === undefined || maxPixels === undefined)
    throw new UserError(
      `${file}: size lacks ${minPixels === undefined ? 'shortest_edge' : 'longest_edge'}: write both, as numbers of pixels`,
    );
  return {
    kind: 'patches',
    filter: filters[c.resample ?? 3],
    minPixels,
    maxPixels,
    patchSize: c.patch_size ?? 14,
    temporalPatchSize: c.temporal_patch_size ?? 2,
    mergeSize: c.merge_size ?? 2,
    rescaleFactor: c.rescale_factor ?? 1 / 255,
    mean: c.image_mean ?? clipMean,
    std: c.image_std ?? clipStd,
  };
}

function tileOptions(c: z.infer<typeof tileSchema>): TileOptions {
  return {
    kind: 'tiles',
    filter: filters[c.resample ?? 1],
    longestEdge: c.size?.longest_edge ?? 4 * 364,
    tileSize: c.max_image_size?.longest_edge ?? 364,
    isSplit: c.do_image_splitting ?? true,
    rescaleFactor: c.rescale_factor ?? 1 / 255,
    mean: c.image_mean ?? half,
    std: c.image_std ?? half,
  };
}
