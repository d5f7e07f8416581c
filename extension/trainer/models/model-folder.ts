// A model folder in Hugging Face's form: config.json and *.safetensors become a decoder with weights, tokenizer.json with its
// companions a chat tokenizer. Every file is checked against the others before anything is used, so nothing is half-loaded.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../protocol/user-error';
import { Weights as TensorFiles } from '../store/safetensors';
import { ChatTokenizer } from './chat-tokenizer';
import { elements, parameterSpecs, parseDecoderConfig } from './decoder-config';
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import { Weights } from './weights';

/**
 * Checks all of a model folder but the values of its weights; gives the number of parameters.
 * @throws UserError naming file, tensor and remedy
 */
export async function checkModelFolder(folder: string): Promise<{ parameters: number }> {
  const { specs, files } = await openDecoder(folder);
  await files.close();
  readTokenizer(folder);
  return { parameters: specs.reduce((sum, { dims }) => sum + elements(dims), 0) };
}

/** Reads config.json alone. Throws a UserError that names the file, the key and the remedy. */
export function readDecoderConfig(folder: string): DecoderConfig {
  return parseDecoderConfig(readJson(folder, 'config.json'), join(folder, 'config.json'));
}

/** Reads configuration and weights. Throws a UserError that names file, tensor and remedy. */
export async function readDecoder(folder: string): Promise<{ config: DecoderConfig; weights: Weights }> {
  const { config, specs, files } = await openDecoder(folder);
  try {
    const weights = new Weights(specs);
    for (const { name } of specs) {
      const data = await files.readFloats(name);
      const bad = data.findIndex(x => !Number.isFinite(x));
      if (bad >= 0)
        throw new UserError(
          `${folder}: the tensor ${name} holds ${data[bad]} at element ${bad}: get the weights anew, they are damaged`,
        );
      weights.view(name).set(data);
    }
    return { config, weights };
  } finally {
    await files.close();
  }
}

/** Reads the configuration and opens the weights, checked against it. */
async function openDecoder(
  folder: string,
): Promise<{ config: DecoderConfig; specs: ParameterSpec[]; files: TensorFiles }> {
  const config = readDecoderConfig(folder);
  const specs = parameterSpecs(config);
  const files = await TensorFiles.open(folder);
  try {
    for (const { name, dims } of specs) {
      const shape = files.info(name)?.shape;
      if (!shape)
        throw new UserError(
          `${folder}: the weights have no tensor ${name}: use weights of the architecture that config.json names`,
        );
      if (shape.join() !== dims.join())
        throw new UserError(
          `${folder}: the tensor ${name} is [${shape.join(', ')}], but config.json asks for [${dims.join(', ')}]: use weights and config.json of one model`,
        );
    }
    return { config, specs, files };
  } catch (error) {
    await files.close();
    throw error;
  }
}

/** Reads tokenizer and chat template. Throws a UserError where one is missing or unusable. */
export function readTokenizer(folder: string): ChatTokenizer {
  const tokenizerConfig = optionalJson(folder, 'tokenizer_config.json') ?? {};
  const templateFile = join(folder, 'chat_template.jinja');
  const inline = tokenizerConfig.chat_template;
  return new ChatTokenizer({
    folder,
    tokenizer: readJson(folder, 'tokenizer.json'),
    tokenizerConfig,
    chatTemplate: existsSync(templateFile)
      ? readFileSync(templateFile, 'utf8')
      : typeof inline === 'string'
        ? inline
        : undefined,
    eosTokenIds: readEosTokenIds(folder),
  });
}

/** Ids that end a sequence: those of generation_config.json, else of config.json; empty where neither names one. */
export function readEosTokenIds(folder: string): number[] {
  const generation = optionalJson(folder, 'generation_config.json') ?? optionalJson(folder, 'config.json') ?? {};
  const eos = generation.eos_token_id;
  return (Array.isArray(eos) ? eos : [eos]).filter(id => typeof id === 'number');
}

function readJson(folder: string, name: string): Record<string, unknown> {
  const file = join(folder, name);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UserError(
      `${folder}: cannot read ${name} (${(error as NodeJS.ErrnoException).code}): choose a model folder that has it`,
    );
  }
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new UserError(`${file}: is not JSON (${(error as Error).message}): get the file anew`);
  }
}

function optionalJson(folder: string, name: string): Record<string, unknown> | undefined {
  return existsSync(join(folder, name)) ? readJson(folder, name) : undefined;
}
