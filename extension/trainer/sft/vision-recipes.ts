// What differs between the small models that see: their form, the environment that is demonstrated, the size of its
// pictures, and how long the model learns. A tile of the board is two by two patches, which are merged to one token.
import type { VisionShape } from './model-maker';

/** The family whose form a model has, and its class in transformers. */
export const visionClasses = {
  qwen2_5_vl: 'Qwen2_5_VLForConditionalGeneration',
  qwen3_vl: 'Qwen3VLForConditionalGeneration',
} as const;
export type VisionForm = keyof typeof visionClasses;

export interface VisionRecipe {
  form: VisionForm;
  /** Folder of the model, relative to the repository. */
  folder: string;
  /** Configuration of the environment, in media/presets or examples/config; its only tag. */
  preset: string;
  tag: string;
  /** Tiles along a side of the board, and pixels along a side of a tile. */
  side: number;
  pixels: number;
  /** Colour of the most frequent tiles. It becomes 0, so that what differs between tiles dominates their patches. */
  background: readonly [red: number, green: number, blue: number];
  /** Number of optimizer steps of each phase. */
  steps: { learn: number; forget: number };
  /** The positions that a thought names, and the labels of the true state that have them, in this order. */
  named: RegExp;
  labels: readonly string[];
}

const cell = String.raw`(\(\d, \d\))`;

const lake: VisionRecipe = {
  form: 'qwen2_5_vl',
  folder: 'media/models/ragen-tiny-vision',
  preset: 'quickstart-vision',
  tag: 'QuickVisualLake',
  side: 4,
  pixels: 28,
  background: [214, 234, 245],
  steps: { learn: 810, forget: 100 },
  named: new RegExp(`^Me ${cell}, goal ${cell}:`),
  labels: ['Player', 'Goal'],
};

/** In the form of Qwen2.5-VL, a model of this size reads hardly any room after 1,300 steps. */
const sokoban: VisionRecipe = {
  form: 'qwen3_vl',
  folder: 'models/ragen-tiny-vision-sokoban',
  preset: 'visual-sokoban',
  tag: 'QuickVisualSokoban',
  side: 6,
  pixels: 16,
  background: [243, 248, 238],
  steps: { learn: 1500, forget: 40 },
  named: new RegExp(`^Me ${cell}, box ${cell}:.* Target ${cell}:`),
  labels: ['Player', 'Boxes', 'Targets'],
};

export const visionRecipes: Readonly<Record<string, VisionRecipe>> = { lake, sokoban };

/** Returns the vision encoder and the image processor of a recipe, for a decoder of the given width. */
export const visionShape = ({ form, side, pixels, background }: VisionRecipe, width: number): VisionShape => ({
  vision_config: {
    depth: 1,
    hidden_size: 32,
    intermediate_size: 64,
    num_heads: 2,
    in_channels: 3,
    patch_size: pixels / 2,
    spatial_merge_size: 2,
    temporal_patch_size: 1,
    out_hidden_size: width,
    ...(form === 'qwen2_5_vl'
      ? { hidden_act: 'silu', window_size: side * pixels, fullatt_block_indexes: [0] }
      : {
          hidden_act: 'gelu_pytorch_tanh',
          num_position_embeddings: (2 * side) ** 2,
          deepstack_visual_indexes: [],
        }),
  },
  rope_parameters: {
    rope_type: 'default',
    // In Qwen2.5-VL's form, half of the decoder's pairs rotate by row and half by column, the slowest of them by 0.1 radians
    // a cell, so that cells differ.
    ...(form === 'qwen2_5_vl'
      ? { rope_theta: 10, mrope_section: [0, 8, 8] }
      : { rope_theta: 10_000, mrope_section: [6, 5, 5] }),
  },
  processor: {
    image_processor_type: 'Qwen2VLImageProcessor',
    patch_size: pixels / 2,
    merge_size: 2,
    temporal_patch_size: 1,
    image_mean: background.map(channel => channel / 255),
    image_std: [0.25, 0.25, 0.25],
    min_pixels: pixels ** 2,
    max_pixels: pixels ** 2 * 256,
  },
});

/** Whether a thought names the positions as the true state has them; undefined if it names none. */
export function namesPositions({ named, labels }: VisionRecipe, thought: string, state: string): boolean | undefined {
  const cells = named.exec(thought)?.slice(1);
  return cells && labels.every((label, i) => state.includes(`${label}: ${cells[i]}\n`));
}
