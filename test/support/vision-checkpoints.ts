// Random vision-language checkpoints that a run can train: the shapes of the golden models (test/golden/vision) with the
// tokenizer of ragen-tiny, to which the family's special tokens are added, and a chat template in the family's form.
import { readFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { parameterSpecs } from '../../extension/models/decoder/decoder-config';
import { encoderSpecs } from '../../extension/models/vision/encoder-config';
import { parseVisionConfig } from '../../extension/models/vision/vision-config';
import { writeSafetensors } from '../../extension/models/weights/safetensors-writer';
import { goldenName } from './vision-models';

const tiny = 'media/models/ragen-tiny';

type Json = Record<string, unknown>;
const read = (file: string): Json => JSON.parse(readFileSync(file, 'utf8')) as Json;

/** The template of Qwen2.5-VL, without videos. */
const qwenTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
/** The template of SmolVLM, which knows only lists of texts and pictures. */
export const smolTemplate =
  "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/** Tokens, template and image processor of Idefics3 and SmolVLM. */
const tiled = (processor: string, tile: number) => ({
  tokens: [
    ...['<fake_token_around_image>', '<global-img>', '<end_of_utterance>'],
    ...[1, 2].flatMap(row => [1, 2].map(column => `<row_${row}_col_${column}>`)),
    '<image>',
  ],
  template: smolTemplate,
  processor: {
    image_processor_type: processor,
    ...{ size: { longest_edge: 2 * tile }, max_image_size: { longest_edge: tile } },
  },
});

const families = {
  qwen2_5_vl: {
    tokens: ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>'],
    template: qwenTemplate,
    processor: {
      image_processor_type: 'Qwen2VLImageProcessor',
      ...{ patch_size: 4, merge_size: 2, temporal_patch_size: 2, min_pixels: 64, max_pixels: 1024 },
    },
  },
  qwen3_vl: {
    tokens: ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>'],
    template: qwenTemplate,
    processor: {
      image_processor_type: 'Qwen2VLImageProcessorFast',
      ...{ patch_size: 4, merge_size: 2, temporal_patch_size: 2, size: { shortest_edge: 64, longest_edge: 1024 } },
    },
  },
  idefics3: tiled('Idefics3ImageProcessor', 16),
  smolvlm: tiled('SmolVLMImageProcessor', 26),
} as const;

/** Id of the first token that is added to ragen-tiny's. */
export const firstId = 800;

/** Returns ragen-tiny's tokenizer.json with further tokens, of which the first are special. */
export function tokenizerWith(special: readonly string[], plain: readonly string[] = []): Json {
  const tokenizer = read(join(tiny, 'tokenizer.json')) as Json & { added_tokens: Json[] };
  [...special, ...plain].forEach((content, i) =>
    tokenizer.added_tokens.push({
      ...{ ...tokenizer.added_tokens[0], content, id: firstId + i },
      special: i < special.length,
    }),
  );
  return tokenizer;
}

export type TinyVision = keyof typeof families;

/** Id of `</think>` in ragen-tiny's tokenizer, and what its logit exceeds others by, in units of the first hidden value. */
const closing = 797;
const closingLogit = 1.6;

export interface VisionModelOptions {
  /** Name of the folder; by default the family's. */
  name?: string;
  /** Gives all hidden states a large first value, by which `</think>` is likely at every token. */
  thinks?: boolean;
  /**
   * Pieces of answers, each of which becomes one token: for each piece, `<think>` and the empty text, which stands for the
   * end, the logits after other pieces. Other tokens are unlikely after a piece.
   */
  answers?: readonly { piece: string; after: Readonly<Record<string, number>> }[];
}

/** Value of the hidden state after a piece of an answer, in the dimension of this piece. */
const pieceValue = 12;

/** Writes a random checkpoint of a family, and returns its folder. */
export async function makeVisionModel(
  parent: string,
  family: TinyVision,
  seed = 1,
  { name = family, thinks = false, answers = [] }: VisionModelOptions = {},
): Promise<string> {
  const folder = join(parent, name);
  mkdirSync(folder, { recursive: true });
  const { tokens, template, processor } = families[family];
  const image = firstId + tokens.length - 1;
  const eos = family === 'idefics3' || family === 'smolvlm' ? firstId + 2 : 795;
  const json = read(join('test/golden/vision', family, 'config.json')) as Json & { text_config: Json };
  const pieces = answers.map(({ piece }) => piece).filter(piece => piece !== '');
  const idOf = (piece: string): number =>
    piece === '' ? eos : piece === '<think>' ? closing - 1 : image + 1 + pieces.indexOf(piece);
  const isUntied = pieces.length > 0 && { tie_word_embeddings: false };
  const config = {
    ...json,
    ...isUntied,
    image_token_id: image,
    dtype: 'float32',
    text_config: {
      ...json.text_config,
      ...isUntied,
      ...{ vocab_size: image + 1 + pieces.length, max_position_embeddings: 2048, eos_token_id: eos, pad_token_id: 793 },
    },
  };
  const write = (name: string, content: unknown): void =>
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  write('config.json', config);
  write('tokenizer.json', tokenizerWith(tokens, pieces));
  write('tokenizer_config.json', read(join(tiny, 'tokenizer_config.json')));
  write('generation_config.json', { eos_token_id: [eos, 793], pad_token_id: 793 });
  write('chat_template.jinja', template);
  write('preprocessor_config.json', processor);
  const { decoder, encoder } = parseVisionConfig(config, folder);
  const stream = new RandomStream(seed);
  const tensors = [...parameterSpecs(decoder), ...encoderSpecs(encoder)].map(({ name, dims, stored: shape = dims }) => {
    const size = dims.reduce((product, n) => product * n, 1);
    const isNorm = dims.length === 1 && name.endsWith('weight');
    const data = Float32Array.from({ length: size }, () => (isNorm ? 1 : 0) + 0.15 * stream.normal());
    if (thinks && (name.endsWith('embed_tokens.weight') || name === 'lm_head.weight')) {
      const isRead = name.startsWith('lm_head') || decoder.tiedHead;
      for (let id = 0; id < dims[0]; id++)
        data[id * dims[1]] = (name.startsWith('lm_head') ? 0 : 6) + (isRead && id === closing ? closingLogit : 0);
    }
    const [isEmbedding, isHead] = [name.endsWith('embed_tokens.weight'), name.startsWith('lm_head')];
    if (pieces.length > 0 && (isEmbedding || isHead)) {
      const dimension = (piece: string): number => 1 + ['<think>', ...pieces].indexOf(piece);
      if (isEmbedding)
        for (const piece of ['<think>', ...pieces]) data[idOf(piece) * dims[1] + dimension(piece)] = pieceValue;
      else
        for (const { piece, after } of answers)
          for (const [before, logit] of Object.entries(after))
            data[idOf(piece) * dims[1] + dimension(before)] = logit / Math.sqrt(dims[1]);
    }
    return { name: goldenName(family, name), shape, data };
  });
  await writeSafetensors(join(folder, 'model.safetensors'), tensors);
  return folder;
}
