// Serialises the trained weights of an engine as files for other tools. The result is a complete model folder in
// Hugging Face format or an adapter folder in PEFT format. In a model folder, all files except the weights are copied
// from the loaded folder.
import { join } from 'node:path';
import type { Engine } from '../../engine/engine';
import type { LoadedModel } from '../../engine/load-options';
import { readRegularSync } from '../../node/regular-file';
import { safetensorsParts } from './safetensors-writer';
import type { FloatTensor } from './safetensors-writer';
import { withOwnHead } from './config-text';
import { headTensor } from '../decoder/decoder-config';
import { openVisionModel } from '../vision/vision-folder';
import { readDecoderConfig, readEncoderConfig, readsPictures } from './model-folder';
import { adapterFiles } from '../adapters/peft-adapter';
import { Weights } from './weights';

/** Names of the files that are copied from the model folder. Weights are not among them. */
const companions = [
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'chat_template.json',
  'generation_config.json',
  'preprocessor_config.json',
  'processor_config.json',
];

/**
 * Returns file contents by name.
 * @param from folder that the model was loaded from
 * @param base name of the base model, stored in an adapter's configuration
 */
export async function modelFiles(
  engine: Pick<Engine, 'parameters'>,
  { lora }: Pick<LoadedModel, 'lora'>,
  from: string,
  base: string,
): Promise<Record<string, Uint8Array>> {
  const tensors = await engine.parameters();
  if (lora) {
    const factors = new Weights(tensors);
    for (const { name, data } of tensors) factors.view(name).set(data);
    const isExact = readsPictures(from) || (lora.exclude ?? null) !== null;
    const model = isExact ? { config: readDecoderConfig(from), encoder: readEncoderConfig(from) } : undefined;
    return adapterFiles({ lora, factors }, base, model);
  }
  const ownHead = tensors.some(({ name }) => name === headTensor);
  const content = (name: string): Uint8Array => {
    const file = join(from, name);
    return name === 'config.json' && ownHead
      ? Buffer.from(withOwnHead(readRegularSync(file).toString('utf8')))
      : new Uint8Array(readRegularSync(file));
  };
  const files = companions.flatMap((name): [string, Uint8Array][] => {
    try {
      return [[name, content(name)]];
    } catch {
      return []; // optional; required files were read on loading
    }
  });
  const stored = tensors.map(({ name, dims, data }) => ({ name, shape: dims, data }));
  const parts = safetensorsParts(readsPictures(from) ? await withEncoder(stored, from) : stored);
  return { ...Object.fromEntries(files), 'model.safetensors': Buffer.concat(parts) };
}

/**
 * Returns the weights of a vision-language model: the trained ones, and those of a frozen encoder from the model's folder,
 * all under the names and with the shapes that the folder has.
 */
async function withEncoder(trained: readonly FloatTensor[], folder: string): Promise<FloatTensor[]> {
  const { files, encoderParameters } = await openVisionModel(folder);
  try {
    const stored = new Map(encoderParameters.map(spec => [spec.name, spec.stored]));
    const all = trained.map(({ name, shape, data }) => ({
      name: files.storedName(name),
      shape: stored.get(name) ?? shape,
      data,
    }));
    const given = new Set(trained.map(({ name }) => name));
    for (const { name } of encoderParameters) {
      if (given.has(name)) continue;
      const { shape } = files.info(name)!;
      all.push({ name: files.storedName(name), shape, data: await files.readFloats(name) });
    }
    return all;
  } finally {
    await files.close();
  }
}
