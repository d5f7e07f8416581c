// Frequencies of rotary positions. They may be scaled for contexts that are longer than in pretraining. There are three
// scaling methods: linear interpolation, the method of Llama 3, and YaRN (Peng et al. 2023, arXiv:2309.00071). The
// methods are those of transformers' modeling_rope_utils. Results are rounded to single precision after the same
// operations as in transformers. If a frequency were rounded differently, its angle at position 30,000 would differ by
// about a thousandth of a radian.
import { z } from 'zod';

const positive = z.number().positive();
/** Sequence length in pretraining, in tokens; scaling factors are relative to this length. */
const original = { original_max_position_embeddings: positive };

/** Keys under rope_scaling or rope_parameters in config.json, per type of scaling. */
export const rotaryScalingSchema = z.discriminatedUnion('rope_type', [
  z.object({ rope_type: z.literal('default') }),
  z.object({ rope_type: z.literal('linear'), factor: positive }),
  z.object({
    rope_type: z.literal('llama3'),
    factor: positive,
    low_freq_factor: positive,
    high_freq_factor: positive,
    ...original,
  }),
  z.object({
    rope_type: z.literal('yarn'),
    factor: positive,
    attention_factor: positive.nullish(),
    mscale: z.number().nullish(),
    mscale_all_dim: z.number().nullish(),
    beta_fast: z.number().nullish(),
    beta_slow: z.number().nullish(),
    truncate: z.boolean().nullish(),
    ...original,
  }),
]);
export type RotaryScaling = z.infer<typeof rotaryScalingSchema>;
export const rotaryScalingTypes = rotaryScalingSchema.options.map(option => option.shape.rope_type.value);

export interface RotaryShape {
  /** Head size, even. */
  headSize: number;
  ropeTheta: number;
  ropeScaling: RotaryScaling;
  /** See DecoderConfig. */
  rotaryAxes?: readonly number[];
}

export interface RotaryFrequencies {
  /** Radians per position, [headSize/2]. */
  inverse: Float32Array;
  /** Factor by which cosine and sine are multiplied (YaRN's attention factor); 1 for other types. */
  scale: number;
}

const f32 = Math.fround;

export function rotaryFrequencies({ headSize, ropeTheta, ropeScaling }: RotaryShape): RotaryFrequencies {
  const wave = Float32Array.from({ length: headSize / 2 }, (_, i) => ropeTheta ** f32((2 * i) / headSize));
  const plain = wave.map(w => 1 / w);
  switch (ropeScaling.rope_type) {
    case 'default':
      return { inverse: plain, scale: 1 };
    case 'linear':
      return { inverse: plain.map(x => x / ropeScaling.factor), scale: 1 };
    case 'llama3':
      return { inverse: plain.map(x => llama3(x, ropeScaling)), scale: 1 };
    case 'yarn':
      return { inverse: yarn(wave, headSize, ropeTheta, ropeScaling), scale: yarnScale(ropeScaling) };
  }
}

/** Returns cosine and sine of tokens with positions of three axes, [3, n]; both results are [n, headSize/2]. */
export function rotaryRows(shape: RotaryShape, positions: Int32Array): { cos: Float32Array; sin: Float32Array } {
  const { inverse, scale } = rotaryFrequencies(shape);
  const n = positions.length / 3;
  const half = inverse.length;
  const cos = new Float32Array(n * half);
  const sin = new Float32Array(n * half);
  for (let token = 0, to = 0; token < n; token++)
    for (let i = 0; i < half; i++, to++) {
      const angle = f32(positions[(shape.rotaryAxes?.[i] ?? 0) * n + token] * inverse[i]);
      cos[to] = Math.cos(angle) * scale;
      sin[to] = Math.sin(angle) * scale;
    }
  return { cos, sin };
}

/** Returns cosine and sine of the positions 0 … rows−1, both [rows, headSize/2]. */
export function rotaryTable(shape: RotaryShape, rows: number): { cos: Float32Array; sin: Float32Array } {
  const { inverse, scale } = rotaryFrequencies(shape);
  const half = inverse.length;
  const cos = new Float32Array(rows * half);
  const sin = new Float32Array(rows * half);
  for (let position = 0; position < rows; position++) {
    for (let i = 0; i < half; i++) {
      const angle = f32(position * inverse[i]);
      cos[position * half + i] = Math.cos(angle) * scale;
      sin[position * half + i] = Math.sin(angle) * scale;
    }
  }
  return { cos, sin };
}

/**
 * Keeps high frequencies, divides low frequencies by the scaling factor, and blends both results for frequencies in
 * between.
 */
function llama3(frequency: number, s: Extract<RotaryScaling, { rope_type: 'llama3' }>): number {
  const context = s.original_max_position_embeddings;
  const length = f32((2 * Math.PI) / frequency);
  if (length > context / s.low_freq_factor) return f32(frequency / s.factor);
  if (length < context / s.high_freq_factor) return frequency;
  const smooth = f32(f32(f32(context / length) - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor));
  return f32(f32(f32(f32(1 - smooth) * frequency) / s.factor) + f32(smooth * frequency));
}

type Yarn = Extract<RotaryScaling, { rope_type: 'yarn' }>;

/**
 * Mixes each frequency with the same frequency divided by the scaling factor. The share of the divided frequency grows
 * with the index of the dimension.
 */
function yarn(wave: Float32Array, headSize: number, theta: number, s: Yarn): Float32Array {
  /** Returns the dimension whose angle makes `turns` full rotations over the pretraining length. */
  const dimension = (turns: number): number =>
    (headSize * Math.log(s.original_max_position_embeddings / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  // transformers treats 0 as unset here, so `||` is used instead of `??`.
  const bounds = [dimension(s.beta_fast || 32), dimension(s.beta_slow || 1)];
  const [first, last] = (s.truncate ?? true) ? [Math.floor(bounds[0]), Math.ceil(bounds[1])] : bounds;
  const low = Math.max(first, 0);
  let high = Math.min(last, headSize - 1);
  if (low === high) high += 0.001;
  return wave.map((w, i) => {
    const keep = f32(1 - Math.min(Math.max(f32(f32(i - low) / (high - low)), 0), 1));
    return f32(f32(1 / f32(s.factor * w)) * f32(1 - keep)) + f32(f32(1 / w) * keep);
  });
}

function yarnScale(s: Yarn): number {
  if (typeof s.attention_factor === 'number') return s.attention_factor;
  const of = (scale: number): number => (s.factor <= 1 ? 1 : 0.1 * scale * Math.log(s.factor) + 1);
  return s.mscale && s.mscale_all_dim ? of(s.mscale) / of(s.mscale_all_dim) : of(1);
}
