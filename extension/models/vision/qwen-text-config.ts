// Parses the decoders of Qwen2.5-VL and Qwen3-VL: Qwen2's and Qwen3's, with positions of three axes (M-RoPE; Qwen2-VL,
// arXiv 2409.12191, §2.1). In Qwen2.5-VL, neighbouring pairs of elements rotate by the same axis; in Qwen3-VL, the axes
// alternate.
import { z } from 'zod';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { parseDecoderConfig } from '../decoder/decoder-config';
import type { DecoderConfig } from '../decoder/decoder-config';

/** Defaults of each family's text configuration that differ from those of the decoder's configuration class. */
const families = {
  qwen2_5_vl: {
    decoder: 'qwen2',
    sections: [16, 24, 24],
    keys: {
      vocab_size: 152_064,
      hidden_size: 8192,
      intermediate_size: 29_568,
      num_hidden_layers: 80,
      num_attention_heads: 64,
      num_key_value_heads: 8,
      rms_norm_eps: 1e-5,
      max_window_layers: 80,
      rope_theta: 1_000_000,
    },
  },
  qwen3_vl: {
    decoder: 'qwen3',
    sections: [24, 20, 20],
    keys: { max_position_embeddings: 128_000, rope_theta: 500_000 },
  },
} as const;

const sectionSchema = z.array(z.number().int().nonnegative()).length(3);

/**
 * Parses the decoder's section; `place` is used only in errors. `tied`: whether embedding and output head are one tensor.
 * @throws UserError for invalid or unsupported values
 */
export function qwenTextConfig(
  family: keyof typeof families,
  text: Record<string, unknown>,
  tied: boolean,
  place: string,
): DecoderConfig {
  const { decoder, keys, sections: defaults } = families[family];
  const key = isRecord(text.rope_scaling) ? 'rope_scaling' : 'rope_parameters';
  const said = isRecord(text[key]) ? text[key] : {};
  const type = said.rope_type ?? said.type ?? 'default';
  const config = parseDecoderConfig(
    {
      ...keys,
      ...text,
      [key]: { ...said, type: undefined, rope_type: type === 'mrope' ? 'default' : type },
      model_type: decoder,
      tie_word_embeddings: tied,
    },
    place,
  );
  if (family === 'qwen3_vl' && said.mrope_interleaved === false)
    throw new UserError(
      `${place}: ${key}.mrope_interleaved is false, which is not supported: use a model of type qwen3_vl whose axes alternate`,
    );
  const sections = sectionSchema.safeParse(said.mrope_section ?? defaults);
  const half = config.headSize / 2;
  if (!sections.success || sections.data.reduce((sum, n) => sum + n, 0) !== half)
    throw new UserError(
      `${place}: ${key}.mrope_section is ${JSON.stringify(said.mrope_section)}, which is not supported: use a model with three sections that sum to half the head size (${half})`,
    );
  const rotaryAxes =
    family === 'qwen3_vl'
      ? Array.from({ length: half }, (_, i) => (i < 3 * sections.data[i % 3] ? i % 3 : 0))
      : sections.data.flatMap((count, axis) => Array<number>(count).fill(axis));
  return { ...config, rotaryAxes };
}
