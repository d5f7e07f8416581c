// Faulty models, with all weights trained and under adapters: each fails with one sentence, of the same kind in both,
// that names the file or tensor and the remedy, before anything is computed.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import type { LoadOptions } from '../../../../extension/engine/load-options';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { streamModel, writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { tensorsOf } from '../../../golden/tensors';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenFolder, plainLoad } from '../../../support/small-models';

const folder = temporaryFolder();
const path = (...names: string[]): string => join(folder(), ...names);
const lora = { rank: 2, alpha: 4, dropout: 0, targets: 'all-linear' };
const ways: [string, Partial<LoadOptions>][] = [
  ['all weights trained', {}],
  ['under adapters', { lora }],
  ['under adapters, in 8 bits', { lora, baseQuantization: 'int8', rolloutQuantization: 'int8' }],
];

/** The error message of loading the model in this test's folder. */
async function refusal(options: Partial<LoadOptions>): Promise<string> {
  const load = new PolicyEngine().load({
    ...plainLoad,
    modelFolder: path('model'),
    cacheFolder: path('cache'),
    ...options,
  });
  const error = await load.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  const { message } = error as UserError;
  expect(message, 'one sentence').not.toMatch(/\n|\.\s[A-Z]/);
  expect(message, 'place: what is wrong: remedy').toMatch(/: .+: .+/);
  return message;
}

type Tensors = Map<string, { dims: number[]; data: Float32Array }>;
const gate = 'model.layers.1.mlp.gate_proj.weight';

/** Writes a copy of the golden model with modified tensors. */
async function model(change: (tensors: Tensors) => void = () => undefined): Promise<void> {
  cpSync(goldenFolder('qwen2'), path('model'), { recursive: true });
  const tensors: Tensors = tensorsOf(join(goldenFolder('qwen2'), 'model.safetensors'));
  change(tensors);
  const list = [...tensors].map(([name, { dims, data }]) => ({ name, shape: dims, data }));
  await writeSafetensors(path('model', 'model.safetensors'), list);
}

/** Changes a tensor's type in the header to another one of the same size. */
function relabel(dtype: string): void {
  const file = path('model', 'model.safetensors');
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length)) as Record<string, { dtype: string }>;
  header[gate].dtype = dtype;
  const text = Buffer.from(JSON.stringify(header));
  expect(text.length).toBeLessThanOrEqual(length);
  bytes.fill(' ', 8, 8 + length);
  text.copy(bytes, 8);
  writeFileSync(file, bytes);
}

describe.each(ways)('%s', (_, options) => {
  test('refuses a missing shard', async () => {
    await model();
    const tensors = [...tensorsOf(path('model', 'model.safetensors'))];
    rmSync(path('model', 'model.safetensors'));
    const streamed = tensors.map(([name, { dims, data }]) => ({
      name,
      shape: dims,
      blocks: async function* () {
        yield data;
      },
    }));
    const names = await streamModel(path('model'), streamed, 'F32', 20_000);
    rmSync(path('model', names[1]));
    expect(await refusal(options)).toBe(
      `weights: ${path('model', 'model.safetensors.index.json')} names the shard ${names[1]}, which is not in the same folder: download or convert the file again`,
    );
  });

  test('refuses a tensor whose type is not a weight type', async () => {
    await model();
    relabel('I32');
    const message = await refusal(options);
    expect(message).toContain(path('model'));
    expect(message).toContain(gate);
    expect(message).toMatch(/I32.*: convert it to F32, F16 or BF16$/);
  });

  test('refuses a tensor of another shape', async () => {
    await model(tensors => (tensors.get(gate)!.dims = [24, 40]));
    expect(await refusal(options)).toBe(
      `${path('model')}: the tensor ${gate} has the shape [24, 40], but config.json requires [40, 24]: use weights and config.json of the same model`,
    );
  });

  test('refuses a missing tensor', async () => {
    await model(tensors => tensors.delete(gate));
    expect(await refusal(options)).toBe(
      `${path('model')}: the weights have no tensor ${gate}: use weights of the architecture that config.json names`,
    );
  });

  test.each([NaN, -Infinity])('refuses a weight that is %f', async bad => {
    await model(tensors => (tensors.get(gate)!.data[5] = bad));
    expect(await refusal(options)).toBe(
      `${path('model')}: the tensor ${gate} is damaged (element 5 is ${bad}): download the weights again`,
    );
  });

  test('refuses an unknown architecture', async () => {
    await model();
    const config = JSON.parse(readFileSync(path('model', 'config.json'), 'utf8')) as object;
    writeFileSync(path('model', 'config.json'), JSON.stringify({ ...config, model_type: 'mamba' }));
    expect(await refusal(options)).toMatch(
      /model.config\.json: model_type is "mamba", which is not supported: use a model of type qwen2, .+$/,
    );
  });

  test('refuses a folder without weights', async () => {
    await model();
    rmSync(path('model', 'model.safetensors'));
    expect(await refusal(options)).toMatch(
      /^weights: .+ has neither model\.safetensors nor model\.safetensors\.index\.json: choose a folder with safetensors weights$/,
    );
  });
});

describe('an adapter', () => {
  test('of another base is refused', async () => {
    const message = await refusal({ modelFolder: goldenFolder('llama'), adapterFolder: 'test/golden/lora/all-linear' });
    expect(message).toMatch(
      /adapter_model\.safetensors: the tensor \S+lora_[AB]\.weight has the shape \[.+\], but for test\/golden\/llama at rank 4 the shape must be \[.+\]: use the adapter with the base model it was made for/,
    );
  });

  test('that is missing is refused', async () => {
    await model();
    expect(await refusal({ adapterFolder: path('none') })).toMatch(
      /none.+adapter_config\.json: choose the folder of a LoRA adapter/,
    );
  });
});

test('8 bits without adapters are refused', async () => {
  await model();
  expect(await refusal({ rolloutQuantization: 'int8' })).toMatch(
    /all weights are trained: set lora\.rank above 0, or set both keys to none$/,
  );
});
