// Reads a model folder in Hugging Face format: a decoder from config.json and *.safetensors, and a chat tokenizer from
// tokenizer.json and related files. All files are checked for consistency while they are loaded, so an error in a
// folder is reported before its model is used.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { Weights as TensorFiles } from './safetensors';
import type { ChatTemplateOptions } from '../tokenizer/chat-template';
import { ChatTokenizer } from '../tokenizer/chat-tokenizer';
import { elements, embeddingTensor, headTensor, parameterSpecs, parseDecoderConfig } from '../decoder/decoder-config';
import type { DecoderConfig, ParameterSpec } from '../decoder/decoder-config';
import type { EncoderConfig } from '../vision/encoder-config';
import { isVisionConfig, parseVisionConfig } from '../vision/vision-config';
import { picturePrompt } from '../vision/picture-prompt';
import type { PicturePrompt } from '../vision/picture-prompt';
import { withPixels } from '../vision/processor-options';
import type { PixelLimits } from '../vision/processor-options';
import { readProcessorOptions } from '../vision/processor-folder';
import { addStoredNames } from '../vision/stored-names';
import { optionalJson, readJson, readText } from './folder-json';
import { quantizedTensor, unquantized } from './quantized-checkpoint';
import { checkVocabulary } from '../tokenizer/vocabulary';
import { Weights } from './weights';

/**
 * Validates a model folder, but not the values of its weights. Returns the number of parameters and the maximum number
 * of positions.
 * @throws UserError that names the file, the tensor and the remedy
 */
export async function checkModelFolder(folder: string): Promise<{ parameters: number; maxPositions: number }> {
  const { config, specs, files } = await openDecoder(folder);
  await files.close();
  readTokenizerFor(folder, config);
  return { parameters: specs.reduce((sum, { dims }) => sum + elements(dims), 0), maxPositions: config.maxPositions };
}

/**
 * Reads only config.json; of a vision-language model, its decoder. The returned `tiedHead` is the declared value; the
 * stored weights may require another value (`openDecoder`). Throws a UserError that names the file, the key and the
 * remedy.
 */
export function readDecoderConfig(folder: string): DecoderConfig {
  const [json, file] = [readJson(folder, 'config.json'), join(folder, 'config.json')];
  return isVisionConfig(json) ? parseVisionConfig(json, file).decoder : parseDecoderConfig(json, file);
}

/** Reads the vision encoder's configuration from config.json; undefined for models that read text only. */
export function readEncoderConfig(folder: string): EncoderConfig | undefined {
  const json = optionalJson(folder, 'config.json');
  return isVisionConfig(json) ? parseVisionConfig(json, join(folder, 'config.json')).encoder : undefined;
}

/** Whether a folder contains a vision-language model, by its config.json. */
export const readsPictures = (folder: string): boolean => isVisionConfig(optionalJson(folder, 'config.json'));

/** Reads configuration and weights. Throws a UserError that names the file, the tensor and the remedy. */
export async function readDecoder(folder: string): Promise<{ config: DecoderConfig; weights: Weights }> {
  const { config, specs, files } = await openDecoder(folder);
  try {
    return { config, weights: await readWeights(specs, files, folder) };
  } finally {
    await files.close();
  }
}

/** Reads the given parameters. Throws a UserError that names the folder, the tensor and the remedy. */
export async function readWeights(
  specs: readonly ParameterSpec[],
  files: TensorFiles,
  folder: string,
): Promise<Weights> {
  const weights = new Weights(specs);
  for (const { name } of specs) {
    const data = await files.readFloats(name);
    const bad = data.findIndex(x => !Number.isFinite(x));
    if (bad >= 0)
      throw new UserError(
        `${folder}: the tensor ${name} is damaged (element ${bad} is ${data[bad]}): download the weights again`,
      );
    weights.view(name).set(data);
  }
  return weights;
}

/**
 * Reads the configuration, opens the weights, and checks that the weights match the configuration. The caller must
 * close the weights. The returned `config.tiedHead` is derived from the stored weights (see `tieWeights`) and may
 * differ from config.json. Throws UserErrors.
 */
export async function openDecoder(
  folder: string,
): Promise<{ config: DecoderConfig; specs: ParameterSpec[]; files: TensorFiles }> {
  const declared = readDecoderConfig(folder);
  const files = await TensorFiles.open(folder);
  try {
    if (readsPictures(folder)) addStoredNames([...parameterSpecs(declared).map(({ name }) => name), headTensor], files);
    const config = await tieWeights(declared, files, folder);
    const specs = parameterSpecs(config);
    checkShapes(specs, files, folder);
    return { config, specs, files };
  } catch (error) {
    await files.close();
    throw error;
  }
}

/**
 * Resolves `tie_word_embeddings: true` for the given files as in transformers 5 (PreTrainedModel.tie_weights). If both
 * embedding and head are stored, they are tied only if they are equal. If only the head is stored, the head is also
 * used as the embedding.
 */
export async function tieWeights(declared: DecoderConfig, files: TensorFiles, folder: string): Promise<DecoderConfig> {
  if (!declared.tiedHead || !files.info(headTensor)) return declared;
  if (!files.info(embeddingTensor)) {
    files.addAlias(embeddingTensor, headTensor);
    return declared;
  }
  const untied = { ...declared, tiedHead: false };
  const both = parameterSpecs(untied).filter(({ name }) => name === embeddingTensor || name === headTensor);
  checkShapes(both, files, folder);
  return (await areEqual(files, elements(both[0].dims))) ? declared : untied;
}

/** Number of elements of embedding and head that are compared at a time. */
const comparedAtOnce = 2 ** 20;

async function areEqual(files: TensorFiles, size: number): Promise<boolean> {
  for (let from = 0; from < size; from += comparedAtOnce) {
    const range = { from, to: Math.min(size, from + comparedAtOnce) };
    const [embedding, head] = await Promise.all(
      [embeddingTensor, headTensor].map(name => files.readFloats(name, range)),
    );
    if (!embedding.every((x, i) => x === head[i])) return false;
  }
  return true;
}

/** Checks that the files contain the given parameters. Throws a UserError that names the tensor and the remedy. */
export function checkShapes(specs: readonly ParameterSpec[], files: TensorFiles, folder: string): void {
  for (const { name, dims: used, stored: dims = used } of specs) {
    const shape = files.info(name)?.shape;
    if (shape?.join() === dims.join()) continue;
    const mark = quantizedTensor(files.names);
    if (mark !== undefined)
      throw new UserError(
        `${folder}: the weights are quantised (they contain ${mark}), which is not supported: ${unquantized}`,
      );
    if (!shape)
      throw new UserError(
        `${folder}: the weights have no tensor ${name}: use weights of the architecture that config.json names`,
      );
    throw new UserError(
      `${folder}: the tensor ${name} has the shape [${shape.join(', ')}], but config.json requires [${dims.join(', ')}]: use weights and config.json of the same model`,
    );
  }
}

/** Further options of a folder's tokenizer. */
export interface TokenizerOptions extends ChatTemplateOptions {
  /** Limits of a picture's size in pixels, for vision-language models. */
  pixels?: PixelLimits;
}

/** Reads tokenizer and chat template. Throws a UserError if either is missing or unusable. */
export function readTokenizer(folder: string, options?: TokenizerOptions): ChatTokenizer {
  const tokenizerConfig = optionalJson(folder, 'tokenizer_config.json') ?? {};
  const tokenizer = readJson(folder, 'tokenizer.json');
  return new ChatTokenizer({
    folder,
    tokenizer,
    tokenizerConfig,
    chatTemplate: readChatTemplate(folder, tokenizerConfig),
    templateOptions: options,
    eosTokenIds: readEosTokenIds(folder),
    pictures: readPicturePrompt(folder, tokenizer, options?.pixels),
  });
}

/** Returns how a vision-language model writes pictures; undefined for other models. */
function readPicturePrompt(folder: string, tokenizer: object, pixels: PixelLimits = {}): PicturePrompt | undefined {
  const json = optionalJson(folder, 'config.json');
  if (!json || !isVisionConfig(json)) return undefined;
  const config = parseVisionConfig(json, join(folder, 'config.json'));
  const options = withPixels(readProcessorOptions(folder, config.encoder), pixels);
  return picturePrompt(config, options, tokenizer, folder);
}

/** Reads the tokenizer for a decoder. Throws a UserError if the embedding lacks rows for the tokenizer's ids. */
export function readTokenizerFor(folder: string, { vocabSize }: Pick<DecoderConfig, 'vocabSize'>): ChatTokenizer {
  const tokenizer = readTokenizer(folder);
  const used = tokenizer.encodePrompt([{ role: 'user', content: '' }], '');
  checkVocabulary(folder, readJson(folder, 'tokenizer.json'), vocabSize, [...used, ...tokenizer.encodeEnd([])]);
  return tokenizer;
}

/**
 * Returns the chat template from chat_template.jinja, else from tokenizer_config.json, else from chat_template.json.
 */
function readChatTemplate(folder: string, tokenizerConfig: Record<string, unknown>): string | undefined {
  const own = join(folder, 'chat_template.jinja');
  if (existsSync(own)) return readText(folder, 'chat_template.jinja');
  return (
    chatTemplateIn(tokenizerConfig.chat_template, join(folder, 'tokenizer_config.json')) ??
    chatTemplateIn(optionalJson(folder, 'chat_template.json')?.chat_template, join(folder, 'chat_template.json'))
  );
}

/**
 * Returns the chat template, which is stored as text or in a list of named templates. From a list, returns the template
 * "default".
 */
function chatTemplateIn(said: unknown, file: string): string | undefined {
  if (said === undefined || said === null) return undefined;
  if (typeof said === 'string') return said;
  const named = z.array(z.object({ name: z.string(), template: z.string() })).safeParse(said);
  const found = named.data?.find(({ name }) => name === 'default');
  if (!found) {
    const names = named.data ? `the templates ${named.data.map(({ name }) => name).join(', ')}` : typeof said;
    throw new UserError(
      `${file}: chat_template is ${names}: write a template as text, or a list with one named default`,
    );
  }
  return found.template;
}

/**
 * Returns the end-of-sequence ids from generation_config.json, else from config.json; empty if neither file has them.
 */
export function readEosTokenIds(folder: string): number[] {
  for (const name of ['generation_config.json', 'config.json']) {
    const eos = optionalJson(folder, name)?.eos_token_id;
    const ids = (Array.isArray(eos) ? eos : [eos]).filter(id => typeof id === 'number');
    if (ids.length > 0) return ids;
  }
  return [];
}

const textShape = z.looseObject({
  vocab_size: z.int().positive(),
  max_position_embeddings: z.int().positive(),
});

/**
 * Reads the vocabulary size and the maximum sequence length from a model's config.json. The model may have any
 * architecture.
 * @throws UserError
 */
export function readTextShape(folder: string): { vocabSize: number; maxPositions: number } {
  const config = readJson(folder, 'config.json') as { text_config?: unknown } | null;
  const parsed = textShape.safeParse(config?.text_config ?? config);
  if (!parsed.success)
    throw new UserError(
      `${join(folder, 'config.json')}: ${parsed.error.issues[0].path.join('.') || 'content'} is missing or is not a positive integer: use the model's own config.json`,
    );
  return { vocabSize: parsed.data.vocab_size, maxPositions: parsed.data.max_position_embeddings };
}
