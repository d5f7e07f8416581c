// Adapter folders: peft's are read, written ones are read back bit by bit, and mismatches are reported in one sentence.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { initializeLora, loraSpecs } from '../../../../extension/models/adapters/lora';
import { adapterFiles, readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import type { Adapter } from '../../../../extension/models/adapters/peft-adapter';
import { Weights } from '../../../../extension/models/weights/weights';
import { streamSafetensors, writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import type { FloatTensor } from '../../../../extension/models/weights/safetensors-writer';
import { tensorsOf } from '../../../golden/tensors';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenConfig, goldenFolder } from '../../../support/small-models';

const made = (name: string): string => join('test/golden/lora', name);
const base = { config: goldenConfig('qwen2'), folder: goldenFolder('qwen2') };
const folder = temporaryFolder();
const path = (name: string): string => join(folder(), name);
const read = (from = folder()): Promise<Adapter> => readAdapter(from, base);

describe('adapters of peft', () => {
  test.each([
    ['all-linear', { rank: 4, alpha: 8, dropout: 0, targets: 'all-linear' }],
    ['q-v', { rank: 4, alpha: 6, dropout: 0, targets: ['q_proj', 'v_proj'] }],
  ])('are read: %s', async (name, lora) => {
    const adapter = await read(made(name));
    expect(adapter.lora).toEqual(lora);
    const tensors = tensorsOf(join(made(name), 'adapter_model.safetensors'));
    expect(adapter.factors.specs).toHaveLength(tensors.size);
    for (const { name: factor } of adapter.factors.specs)
      expect(adapter.factors.view(factor)).toEqual(tensors.get(`base_model.model.${factor}`)!.data);
  });
});

describe('a written adapter', () => {
  const write = (adapter: Adapter): void => {
    mkdirSync(path('a'));
    for (const [name, bytes] of Object.entries(adapterFiles(adapter, 'org/base')))
      writeFileSync(path(`a/${name}`), bytes);
  };

  test.each([
    ['all-linear', 'all-linear'],
    ['an expression', '.*\\.[qv]_proj', ['q_proj', 'v_proj']],
    ['names', ['o_proj']],
    ['one layer of two', ['model.layers.1.mlp.up_proj']],
  ])('%s is read back bit by bit', async (_, targets, readAs: unknown = targets) => {
    const lora = { rank: 3, alpha: 5, dropout: 0.05, targets };
    const factors = new Weights(loraSpecs(base.config, lora));
    initializeLora(factors, new RandomStream(5));
    write({ lora, factors });
    const adapter = await read(path('a'));
    expect(adapter.lora).toEqual({ ...lora, targets: readAs });
    expect(adapter.factors.flat).toEqual(factors.flat);
  });

  test("uses peft's keys, with layer names that every reader finds", async () => {
    write(await read(made('all-linear')));
    const json = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    const ours = json(path('a/adapter_config.json'));
    const theirs = json(join(made('all-linear'), 'adapter_config.json'));
    for (const [key, value] of Object.entries(ours))
      if (!['base_model_name_or_path', 'target_modules'].includes(key))
        expect({ [key]: value }).toEqual({ [key]: theirs[key] });
    expect(ours.base_model_name_or_path).toBe('org/base');
    expect(ours.target_modules).toEqual(['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']);
  });
});

describe('a modified adapter', () => {
  beforeEach(() => cpSync(made('q-v'), folder(), { recursive: true }));
  const reconfigure = (change: Record<string, unknown>): void => {
    const file = path('adapter_config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    writeFileSync(file, JSON.stringify({ ...config, ...change }));
  };
  const tensors = (): FloatTensor[] =>
    [...tensorsOf(join(made('q-v'), 'adapter_model.safetensors'))].map(([name, { dims, data }]) => ({
      name,
      shape: dims,
      data,
    }));
  const rewrite = (change: (tensors: FloatTensor[]) => FloatTensor[]): Promise<void> =>
    writeSafetensors(path('adapter_model.safetensors'), change(tensors()));
  const refusal = async (): Promise<string> => {
    const error: unknown = await read().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(UserError);
    const { message } = error as UserError;
    expect(message).not.toContain('\n');
    return message;
  };
  const first = 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight';

  test('with a rank-stabilised scale gets an equivalent alpha', async () => {
    reconfigure({ use_rslora: true });
    const { lora } = await read();
    expect(lora.alpha / lora.rank).toBeCloseTo(6 / Math.sqrt(4), 12);
  });

  test('in half precision is read', async () => {
    const blocks = tensors().map(({ name, shape, data }) => ({
      name,
      shape,
      async *blocks() {
        yield await Promise.resolve(data);
      },
    }));
    await streamSafetensors(path('adapter_model.safetensors'), blocks, 'BF16');
    const [whole, half] = [await read(made('q-v')), await read()];
    for (const [i, x] of half.factors.flat.entries()) expect(x).toBeCloseTo(whole.factors.flat[i], 2);
    expect(half.factors.flat).not.toEqual(whole.factors.flat);
  });

  test('made with an expression, some layers or exceptions is read by the factors in its file', async () => {
    await rewrite(list => list.filter(({ name }) => name.includes('.layers.1.')));
    expect(await refusal()).toContain(`the tensor ${first} is missing`);
    for (const change of [
      { target_modules: '.*(q|v)_proj' },
      { layers_to_transform: [1] },
      { exclude_modules: '.*layers.0.*' },
      { target_modules: null },
    ]) {
      cpSync(join(made('q-v'), 'adapter_config.json'), path('adapter_config.json'));
      reconfigure(change);
      expect((await read()).lora.targets).toEqual(['q_proj', 'v_proj'].map(name => `model.layers.1.self_attn.${name}`));
    }
  });

  test.each([
    [{ peft_type: 'IA3' }, /peft_type is "IA3", which is not supported: use a LORA adapter$/],
    [{ bias: 'lora_only' }, /bias is "lora_only", which is not supported: merge the adapter into its base with peft/],
    [{ use_dora: true }, /use_dora is true/],
    [{ modules_to_save: ['lm_head'] }, /modules_to_save is \["lm_head"\]/],
    [{ rank_pattern: { q_proj: 8 } }, /rank_pattern is \{"q_proj":8\}/],
    [{ alpha_pattern: { q_proj: 8 } }, /alpha_pattern is/],
    [{ layer_replication: [[0, 1]] }, /layer_replication is/],
    [{ init_lora_weights: 'pissa' }, /init_lora_weights is "pissa"/],
    [{ r: 0 }, /adapter_config\.json: r: .*: use the adapter_config\.json of a LoRA adapter$/],
    [
      { r: 8 },
      /q_proj.lora_A.weight has the shape \[4, 24\], but for test\/golden\/qwen2 at rank 8 the shape must be \[8, 24\]: use the adapter with the base model it was made for, qwen2$/,
    ],
    [
      { target_modules: ['q_proj', 'k_proj', 'v_proj'] },
      /the tensor base_model\.model\.model\.layers\.0\.self_attn\.k_proj\.lora_A\.weight is missing, so the adapter is incomplete: download it again/,
    ],
  ])('with %j is refused', async (change, sentence) => {
    reconfigure(change);
    expect(await refusal()).toMatch(sentence);
  });

  test("with PEFT's empty values is accepted", async () => {
    reconfigure({
      modules_to_save: [],
      rank_pattern: null,
      bias: 'none',
      use_qalora: false,
      init_lora_weights: 'gaussian',
    });
    expect((await read()).lora.rank).toBe(4);
  });

  test('with one factor of a pair is refused', async () => {
    await rewrite(list => list.filter(({ name }) => name !== first));
    expect(await refusal()).toContain(
      `the tensor ${first} is missing, so the adapter is incomplete: download it again`,
    );
    await rewrite(() => []);
    expect(await refusal()).toMatch(/has no tensors/);
  });

  test('of another base is refused', async () => {
    await expect(readAdapter(folder(), { config: goldenConfig('llama'), folder: 'llama' })).rejects.toThrow(
      /adapter_model\.safetensors: the tensor base_model\.model\.model\.layers\.0\.self_attn\.v_proj\.lora_B\.weight has the shape \[12, 4\], but for llama at rank 4 the shape must be \[6, 4\]: use the adapter with the base model it was made for, qwen2$/,
    );
    const shallow = { config: { ...base.config, layers: 1 }, folder: 'shallow' };
    await expect(readAdapter(folder(), shallow)).rejects.toThrow(
      /the tensor base_model\.model\.model\.layers\.1\.\S+ belongs to no linear layer of shallow that supports adapters: use the adapter with the base model/,
    );
  });

  test.each([
    ['base_model.model.lm_head.lora_A.weight', 'lm_head'],
    ['base_model.model.lm_head.weight', 'lm_head'],
    ['base_model.model.lm_head.base_layer.weight', 'lm_head'],
    ['base_model.model.model.embed_tokens.lora_embedding_A', 'embed_tokens'],
    ['base_model.model.model.embed_tokens.weight', 'embed_tokens'],
  ])('%s is refused as a change of %s', async (name, module) => {
    await rewrite(list => [...list, { name, shape: [1], data: new Float32Array(1) }]);
    expect(await refusal()).toMatch(
      new RegExp(
        `the tensor ${name} changes ${module}, for which adapters are not supported: merge the adapter into its base with peft`,
      ),
    );
  });

  test("without optional keys gets PEFT's defaults", async () => {
    const file = path('adapter_config.json');
    const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
    const { peft_type, r } = config;
    writeFileSync(file, JSON.stringify({ peft_type, r }));
    expect((await read()).lora).toEqual({ rank: 4, alpha: 8, dropout: 0, targets: ['q_proj', 'v_proj'] });
    delete config.layers_to_transform;
    delete config.init_lora_weights;
    writeFileSync(file, JSON.stringify(config));
    expect((await read()).lora.alpha).toBe(6);
    writeFileSync(file, JSON.stringify({ peft_type }));
    expect(await refusal()).toMatch(/has the shape \[4, 24\], but for test\/golden\/qwen2 at rank 8/);
  });

  test('with a non-finite value is refused', async () => {
    await rewrite(list => {
      list.find(({ name }) => name === first)!.data[3] = NaN;
      return list;
    });
    expect(await refusal()).toMatch(
      /q_proj\.lora_A\.weight is damaged \(element 3 is NaN\): download the adapter again$/,
    );
  });

  test('with missing or broken files is refused', async () => {
    writeFileSync(path('adapter_config.json'), '{');
    expect(await refusal()).toMatch(/adapter_config\.json: the file is not JSON/);
    writeFileSync(path('adapter_config.json'), '[]');
    expect(await refusal()).toMatch(/use the adapter_config\.json of a LoRA adapter/);
    rmSync(path('adapter_config.json'));
    expect(await refusal()).toMatch(/has no adapter_config\.json: choose the folder of a LoRA adapter/);
    cpSync(join(made('q-v'), 'adapter_config.json'), path('adapter_config.json'));
    rmSync(path('adapter_model.safetensors'));
    expect(await refusal()).toMatch(/has no adapter_model\.safetensors: choose the folder/);
    writeFileSync(path('adapter_model.bin'), '');
    expect(await refusal()).toMatch(/save the adapter with safe_serialization=True$/);
  });
});
