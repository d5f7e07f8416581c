// The trained weights of an engine as files that others load: a whole model folder in Hugging Face's form, with what belongs to it copied
// from the folder it was loaded from, or an adapter's in PEFT's form.
import { join } from 'node:path';
import type { Engine, LoadedModel } from '../engine/engine';
import { readRegularSync } from '../store/regular-file';
import { safetensorsParts } from '../store/safetensors-writer';
import { withOwnHead } from './config-text';
import { headTensor } from './decoder-config';
import { adapterFiles } from './peft-adapter';
import { Weights } from './weights';

/** Files of the model folder that go with its weights. */
const companions = [
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'chat_template.json',
  'generation_config.json',
];

/**
 * Contents by file name.
 * @param from the folder that was loaded
 * @param base what an adapter says it was made for
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
    return adapterFiles({ lora, factors }, base);
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
      return []; // a model folder need not have all of them; those it must have were read when it was loaded
    }
  });
  const parts = safetensorsParts(tensors.map(({ name, dims, data }) => ({ name, shape: dims, data })));
  return { ...Object.fromEntries(files), 'model.safetensors': Buffer.concat(parts) };
}
