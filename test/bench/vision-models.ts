// Model folders of the benchmarks with pictures: the bundled ragen-tiny-vision, and random weights in the shape of
// SmolVLM-256M, which are written to the temporary folder once, in bfloat16 as the published model.
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parameterSpecs } from '../../extension/models/decoder/decoder-config';
import { encoderSpecs } from '../../extension/models/vision/encoder-config';
import { parseVisionConfig } from '../../extension/models/vision/vision-config';
import { streamModel } from '../../extension/models/weights/safetensors-writer';
import type { StreamedTensor } from '../../extension/models/weights/safetensors-writer';
import { firstId, smolTemplate, tokenizerWith } from '../support/vision-checkpoints';
import { goldenName } from '../support/vision-models';
import type { EncoderShape } from './necessary-operations';
import { cacheFolder, maxFileBytes, randomBlocks } from './random-model';

/** `tiny`: ragen-tiny-vision. `smol`: the shape of SmolVLM-256M, which shows each picture as one tile. */
export type VisionModelName = 'tiny' | 'smol';

const tile = 512;
const tokens = ['<fake_token_around_image>', '<global-img>', '<end_of_utterance>', '<image>'];
const [eos, image] = [firstId + 2, firstId + 3];
const pad = 793;

/** config.json of HuggingFaceTB/SmolVLM-256M-Instruct, with the ids of the tokenizer above. */
const smolConfig = {
  architectures: ['Idefics3ForConditionalGeneration'],
  model_type: 'idefics3',
  image_token_id: image,
  scale_factor: 4,
  tie_word_embeddings: false,
  text_config: {
    model_type: 'llama',
    vocab_size: 49_280,
    hidden_size: 576,
    intermediate_size: 1536,
    num_hidden_layers: 30,
    num_attention_heads: 9,
    num_key_value_heads: 3,
    head_dim: 64,
    hidden_act: 'silu',
    max_position_embeddings: 8192,
    rms_norm_eps: 1e-5,
    rope_theta: 100_000,
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
    bos_token_id: 1,
    eos_token_id: eos,
    pad_token_id: pad,
  },
  vision_config: {
    model_type: 'idefics3_vision',
    hidden_size: 768,
    intermediate_size: 3072,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    num_channels: 3,
    image_size: tile,
    patch_size: 16,
    hidden_act: 'gelu_pytorch_tanh',
    layer_norm_eps: 1e-6,
  },
};

const { vision_config: seen } = smolConfig;

/** The encoder of SmolVLM-256M, and the patches of a picture of one tile. */
export const smolEncoder: EncoderShape = {
  hidden: seen.hidden_size,
  intermediate: seen.intermediate_size,
  layers: seen.num_hidden_layers,
  patches: (tile / seen.patch_size) ** 2,
  patch_width: seen.num_channels * seen.patch_size ** 2,
};

const smolFiles = {
  'config.json': smolConfig,
  'tokenizer.json': tokenizerWith(tokens),
  'tokenizer_config.json': { tokenizer_class: 'PreTrainedTokenizerFast', clean_up_tokenization_spaces: false },
  'generation_config.json': { eos_token_id: [eos, pad], pad_token_id: pad },
  'chat_template.jinja': smolTemplate,
  'preprocessor_config.json': {
    image_processor_type: 'Idefics3ImageProcessor',
    size: { longest_edge: tile },
    max_image_size: { longest_edge: tile },
    image_mean: [0.5, 0.5, 0.5],
    image_std: [0.5, 0.5, 0.5],
  },
};

const tinyFolder = join('media', 'models', 'ragen-tiny-vision');
const smolFolder = join(cacheFolder, 'smolvlm-256m');

export const visionFolder = (name: VisionModelName): string => (name === 'tiny' ? tinyFolder : smolFolder);

/** Writes the folder of a model if it is missing; resolves to the folder. */
export async function visionModel(name: VisionModelName): Promise<string> {
  const folder = visionFolder(name);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.unfinished-${process.pid}`;
  try {
    await mkdir(unfinished, { recursive: true });
    for (const [file, content] of Object.entries(smolFiles))
      await writeFile(join(unfinished, file), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
    const { decoder, encoder } = parseVisionConfig(smolConfig, folder);
    const tensors = [...parameterSpecs(decoder), ...encoderSpecs(encoder)].map(
      ({ name: parameter, dims, stored: shape = dims }): StreamedTensor => ({
        name: goldenName('idefics3', parameter),
        shape,
        blocks: randomBlocks(dims, dims.length === 1 && parameter.endsWith('weight')),
      }),
    );
    await streamModel(unfinished, tensors, 'BF16', maxFileBytes);
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return folder;
}
