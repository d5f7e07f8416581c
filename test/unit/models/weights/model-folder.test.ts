// Reading a model folder: folders written by transformers are read completely, from one file or shards, in any float
// type; each fault of a folder is reported in one sentence with file, tensor and remedy.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { parameterSpecs, parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { readDecoder, readTokenizer } from '../../../../extension/models/weights/model-folder';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { chatMl } from '../../../golden/tokenizer/fixture';
import { tensorsOf } from '../../../golden/tensors';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenFolder, goldenWeights } from '../../../support/small-models';

const folder = temporaryFolder();
const path = (name: string): string => join(folder(), name);
type Tensors = ReturnType<typeof tensorsOf>;

/** Writes a copy of the golden checkpoint with modified tensors. */
async function checkpoint(change: (tensors: Tensors) => void = () => undefined): Promise<void> {
  cpSync(join(goldenFolder('qwen2'), 'config.json'), path('config.json'));
  const tensors = tensorsOf(join(goldenFolder('qwen2'), 'model.safetensors'));
  change(tensors);
  const list = [...tensors].map(([name, { dims, data }]) => ({ name, shape: dims, data }));
  await writeSafetensors(path('model.safetensors'), list);
}

function changeConfig(change: Record<string, unknown>): void {
  const config = JSON.parse(readFileSync(path('config.json'), 'utf8')) as object;
  writeFileSync(path('config.json'), JSON.stringify({ ...config, ...change }));
}

/** The message of the UserError raised by reading the folder. */
async function refusal(read: () => unknown = () => readDecoder(folder())): Promise<string> {
  try {
    await read();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    const { message } = error as UserError;
    expect(message).toContain(folder());
    expect(message, 'one sentence').not.toMatch(/\n|\.\s/);
    expect(message, 'place: what is wrong: remedy').toMatch(/: .+: .+/);
    return message;
  }
  throw new Error('nothing was refused');
}

describe('a decoder', () => {
  it.each(['qwen2', 'llama'])('of %s is read as transformers wrote it', async family => {
    const { config, weights } = await readDecoder(goldenFolder(family));
    expect(config).toMatchObject({ family, vocabSize: 61, layers: 2, heads: 4, tiedHead: family === 'qwen2' });
    expect(weights.flat).toEqual(goldenWeights(family).flat);
    expect(weights.count).toBe(weights.specs.reduce((n, { dims }) => n + dims.reduce((a, b) => a * b), 0));
  });

  it('may come in shards', async () => {
    await checkpoint();
    const tensors = [...tensorsOf(path('model.safetensors'))].map(([name, { dims, data }]) => ({
      name,
      shape: dims,
      data,
    }));
    rmSync(path('model.safetensors'));
    const shards = [tensors.slice(0, 5), tensors.slice(5)];
    const names = shards.map((_, i) => `model-0000${i + 1}-of-00002.safetensors`);
    for (const [i, shard] of shards.entries()) await writeSafetensors(path(names[i]), shard);
    const weight_map = Object.fromEntries(shards.flatMap((shard, i) => shard.map(({ name }) => [name, names[i]])));
    writeFileSync(path('model.safetensors.index.json'), JSON.stringify({ weight_map }));
    expect((await readDecoder(folder())).weights.flat).toEqual(goldenWeights('qwen2').flat);
  });

  it('may contain tensors that it does not need, such as a stored tied head', async () => {
    await checkpoint(tensors => tensors.set('lm_head.weight', tensors.get('model.embed_tokens.weight')!));
    expect((await readDecoder(folder())).weights.flat).toEqual(goldenWeights('qwen2').flat);
  });

  it.each([NaN, Infinity, -Infinity])('with a weight that is %f is refused', async bad => {
    await checkpoint(tensors => (tensors.get('model.layers.1.mlp.up_proj.weight')!.data[17] = bad));
    expect(await refusal()).toMatch(
      new RegExp(
        `the tensor model\\.layers\\.1\\.mlp\\.up_proj\\.weight is damaged \\(element 17 is ${bad}\\): download the weights again`,
      ),
    );
  });

  it('without a tensor is refused', async () => {
    await checkpoint(tensors => tensors.delete('model.norm.weight'));
    expect(await refusal()).toMatch(/have no tensor model\.norm\.weight: use weights of the architecture/);
  });

  it('with a tensor of another shape is refused', async () => {
    await checkpoint();
    changeConfig({ intermediate_size: 44 });
    expect(await refusal()).toMatch(
      /model\.layers\.0\.mlp\.gate_proj\.weight has the shape \[40, 24\], but config\.json requires \[44, 24\]: use weights and config/,
    );
  });

  it.each([
    ['model.layers.0.self_attn.q_proj.qweight', 'in place of a weight'],
    ['model.layers.0.self_attn.q_proj.weight.quant_state.bitsandbytes__nf4', 'beside a weight of another shape'],
  ])('that was quantised is refused by its tensor %s, %s', async name => {
    const weight = 'model.layers.0.self_attn.q_proj.weight';
    await checkpoint(tensors => {
      if (name.endsWith('.qweight')) tensors.delete(weight);
      else tensors.set(weight, { dims: [4, 1], data: new Float32Array(4) });
      tensors.set(name, { dims: [2], data: new Float32Array(2) });
    });
    expect(await refusal()).toContain(
      `the weights are quantised (they contain ${name}), which is not supported: use the original model`,
    );
  });

  it('with truncated weights is refused', async () => {
    await checkpoint();
    const bytes = readFileSync(path('model.safetensors'));
    writeFileSync(path('model.safetensors'), bytes.subarray(0, bytes.length - 100));
    expect(await refusal()).toMatch(
      /model\.safetensors has \d+ bytes, but its header requires \d+: download or convert the file again/,
    );
  });

  it('with a weight header that is not JSON is refused', async () => {
    await checkpoint();
    const bytes = readFileSync(path('model.safetensors'));
    bytes[9] = 0x7b;
    writeFileSync(path('model.safetensors'), bytes);
    expect(await refusal()).toMatch(
      /model\.safetensors has a header that is not JSON: download or convert the file again/,
    );
  });

  it('without weights is refused', async () => {
    await checkpoint();
    rmSync(path('model.safetensors'));
    expect(await refusal()).toMatch(
      /has neither model\.safetensors nor model\.safetensors\.index\.json: choose a folder/,
    );
  });

  it('without config.json is refused', async () => {
    expect(await refusal()).toMatch(
      /cannot read config\.json \(ENOENT\): choose a model folder that contains this file/,
    );
  });

  it.each([
    ['not JSON', '{"model_type": ', /config\.json: the file is not valid JSON \(.+\): download the file again/],
    [
      'JSON of something else',
      '[]',
      /config\.json: the content is not a JSON object: use the config\.json of a decoder-only model/,
    ],
    ['null', 'null', /config\.json: the content is not a JSON object: use the config\.json of a decoder-only model/],
  ])('with a config.json that is %s is refused', async (_, text, sentence) => {
    await checkpoint();
    writeFileSync(path('config.json'), text);
    expect(await refusal()).toMatch(sentence);
  });

  it('of an unknown architecture is refused before its weights are opened', async () => {
    await checkpoint();
    rmSync(path('model.safetensors'));
    changeConfig({ model_type: 'mamba' });
    expect(await refusal()).toMatch(
      /config\.json: model_type is "mamba", which is not supported: use a model of type qwen2/,
    );
  });
});

describe('a configuration', () => {
  const qwen = JSON.parse(readFileSync(join(goldenFolder('qwen2'), 'config.json'), 'utf8')) as Record<string, unknown>;
  const parse = (change: Record<string, unknown>) => parseDecoderConfig({ ...qwen, ...change }, 'm/config.json');

  it.each([
    [
      { rope_scaling: { type: 'dynamic', factor: 4 } },
      /rope_scaling\.rope_type is "dynamic", which is not supported: use a model whose rope_type is one of default, linear, llama3, yarn$/,
    ],
    [{ rope_parameters: { rope_type: 'longrope', rope_theta: 5e5 } }, /rope_parameters\.rope_type is "longrope"/],
    [
      { rope_parameters: { rope_type: 'llama3', rope_theta: 5e5, factor: 8 } },
      /rope_parameters\.low_freq_factor: .+: rope scaling of type llama3 requires this key; download config\.json again/,
    ],
    [{ partial_rotary_factor: 0.5 }, /partial_rotary_factor is 0\.5, .+ whose partial_rotary_factor is 1/],
    [{ hidden_act: 'gelu' }, /hidden_act is "gelu", which is not supported: use a model whose hidden_act is silu/],
    [
      { use_sliding_window: true, sliding_window: 32, max_window_layers: 1, layer_types: null },
      /sliding_window is 32, .+ shorter than the model's \d+ positions/,
    ],
    [{ layer_types: ['full_attention', 'linear_attention'] }, /layer_types is "linear_attention"/],
    [
      { num_key_value_heads: 3 },
      /num_key_value_heads is 3, .+ whose num_key_value_heads divides num_attention_heads \(4\)/,
    ],
    [
      { hidden_size: 20, head_dim: null },
      /hidden_size is 20, .+ each head has 5 elements; .+ rotary positions rotate pairs/,
    ],
    [{ head_dim: 7 }, /head_dim is 7, .+ use a model with an even head size/],
    [{ vocab_size: 0 }, /m\/config\.json: vocab_size: /],
    [{ num_hidden_layers: '2' }, /m\/config\.json: num_hidden_layers: /],
  ])('with %j is refused', (change, sentence) => {
    expect(() => parse(change)).toThrow(UserError);
    expect(() => parse(change)).toThrow(sentence);
  });

  it('has the defaults of transformers', () => {
    expect(parse({ num_key_value_heads: null }).kvHeads).toBe(4);
    expect(parse({ head_dim: undefined }).headSize).toBe(6);
    expect(parse({ head_dim: 16 }).headSize).toBe(16);
    expect(parse({ tie_word_embeddings: undefined }).tiedHead).toBe(false);
    expect(parse({ model_type: 'qwen3', head_dim: undefined }).headSize).toBe(128);
    expect(parse({ rope_parameters: undefined, rope_theta: undefined }).ropeTheta).toBe(10_000);
    expect(parse({ rope_parameters: undefined, rope_theta: 1e6 }).ropeTheta).toBe(1e6);
    expect(parse({ rope_parameters: { rope_type: 'default', rope_theta: 5e5 }, rope_theta: 1e6 }).ropeTheta).toBe(5e5);
  });
});

describe('biases and norms', () => {
  const names = (change: Record<string, unknown>): string[] => {
    const json = JSON.parse(readFileSync(join(goldenFolder('llama'), 'config.json'), 'utf8')) as object;
    const layer = 'model.layers.0.';
    return parameterSpecs(parseDecoderConfig({ ...json, ...change }, 'config.json'))
      .map(({ name }) => name)
      .filter(name => name.startsWith(layer) && /bias|[qk]_norm/.test(name))
      .map(name => name.slice(layer.length));
  };
  const qkv = ['q', 'k', 'v'].map(part => `self_attn.${part}_proj.bias`);
  const output = 'self_attn.o_proj.bias';
  const mlp = ['gate', 'up', 'down'].map(part => `mlp.${part}_proj.bias`);
  const norms = ['self_attn.q_norm.weight', 'self_attn.k_norm.weight'];

  it.each([
    ['llama', {}, []],
    ['llama', { attention_bias: true }, [...qkv, output]],
    ['llama', { mlp_bias: true }, mlp],
    ['qwen2', {}, qkv],
    ['qwen2', { attention_bias: false, mlp_bias: true }, qkv],
    ['qwen3', {}, norms],
    ['qwen3', { attention_bias: true, mlp_bias: true }, [...qkv, output, ...norms]],
  ])('of %s with %j are those of transformers', (model_type, change, expected) => {
    expect(names({ model_type, ...change })).toEqual(expected);
  });
});

it.each([
  { use_sliding_window: false, sliding_window: 16, max_window_layers: 0 },
  { use_sliding_window: true, sliding_window: 16, max_window_layers: 2 },
  { use_sliding_window: true, sliding_window: null, max_window_layers: 0 },
  { use_sliding_window: true, sliding_window: 64, max_window_layers: 0 },
  { model_type: 'llama', use_sliding_window: true, sliding_window: 16, max_window_layers: 0 },
])('a sliding window of no layer, or one over the whole context, is ignored: %j', change => {
  const json = JSON.parse(readFileSync(join(goldenFolder('qwen2'), 'config.json'), 'utf8')) as object;
  expect(parseDecoderConfig({ ...json, layer_types: null, ...change }, 'config.json').layers).toBe(2);
});

describe('a tokenizer', () => {
  const write = (name: string, content: unknown): void =>
    writeFileSync(path(name), typeof content === 'string' ? content : JSON.stringify(content));
  const refusalOf = (): Promise<string> => refusal(() => readTokenizer(folder()));
  const tokenizer = (): void => cpSync('test/golden/tokenizer/own.json', path('tokenizer.json'));

  it('takes its template from chat_template.jinja, or else from tokenizer_config.json', () => {
    tokenizer();
    const asked = [{ role: 'user', content: 'Go.' }] as const;
    write('tokenizer_config.json', { chat_template: "{{ messages[-1].content + '<|im_end|>' }}" });
    expect(readTokenizer(folder()).render(asked, true)).toBe('Go.<|im_end|>');
    write('chat_template.jinja', chatMl);
    expect(readTokenizer(folder()).render(asked, true)).toMatch(/^<\|im_start\|>system\n/);
  });

  it.each([
    [{ eos_token_id: [374, 373] }, { eos_token_id: 7 }, [375, 374, 373]],
    [{ eos_token_id: 373 }, { eos_token_id: 7 }, [375, 373]],
    [undefined, { eos_token_id: 374 }, [375, 374]],
    [undefined, {}, [375]],
  ])('ends answers at generation_config.json %j, config.json %j', (generation, config, stopTokenIds) => {
    tokenizer();
    write('chat_template.jinja', chatMl);
    if (generation) write('generation_config.json', generation);
    write('config.json', config);
    expect(readTokenizer(folder()).stopTokenIds).toEqual(stopTokenIds);
  });

  it('without tokenizer.json is refused', async () => {
    write('chat_template.jinja', chatMl);
    expect(await refusalOf()).toMatch(
      /cannot read tokenizer\.json \(ENOENT\): choose a model folder that contains this file/,
    );
  });

  it('that is a folder is refused', async () => {
    mkdirSync(path('tokenizer.json'));
    expect(await refusalOf()).toMatch(/cannot read tokenizer\.json \(EISDIR\)/);
  });

  it('without a template is refused', async () => {
    tokenizer();
    expect(await refusalOf()).toMatch(/no chat template: add chat_template\.jinja or use an instruction-tuned model/);
  });

  it.each(['tokenizer.json', 'tokenizer_config.json', 'generation_config.json'])(
    'with a broken %s is refused',
    async name => {
      tokenizer();
      write('chat_template.jinja', chatMl);
      write(name, '{');
      expect(await refusalOf()).toMatch(
        new RegExp(`${name}: the file is not valid JSON \\(.+\\): download the file again`),
      );
    },
  );
});
