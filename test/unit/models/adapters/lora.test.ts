// Which layers get adapters, and the layout and initial values of their factors, as in PEFT.
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { initializeLora, loraModules, loraScale, loraSpecs } from '../../../../extension/models/adapters/lora';
import { Weights } from '../../../../extension/models/weights/weights';
import { tensorsOf } from '../../../golden/tensors';
import { goldenConfig, tinyConfig } from '../../../support/small-models';
import { refusalOf } from '../../../support/refusal';

const config = goldenConfig('qwen2');
const layers = [0, 1].map(i => `model.layers.${i}`);
const lora = { rank: 4, alpha: 8, dropout: 0 };

describe('factors', () => {
  test.each([
    ['all-linear', 'all-linear'],
    ['q-v', ['q_proj', 'v_proj']],
  ])('equal those that peft creates for %s', (name, targets) => {
    const tensors = tensorsOf(join('test/golden/lora', name, 'adapter_model.safetensors'));
    const made = [...tensors].map(([tensor, { dims }]) => [tensor.replace('base_model.model.', ''), dims]);
    const specs = loraSpecs(config, { ...lora, targets });
    expect(Object.fromEntries(specs.map(({ name: spec, dims }) => [spec, dims]))).toEqual(Object.fromEntries(made));
  });

  test('come in the order of the layers, A before B', () => {
    const names = loraSpecs(config, { ...lora, targets: ['down_proj', 'q_proj'] }).map(({ name }) => name);
    expect(names).toEqual(
      layers.flatMap(layer =>
        ['self_attn.q_proj', 'mlp.down_proj'].flatMap(module =>
          ['A', 'B'].map(factor => `${layer}.${module}.lora_${factor}.weight`),
        ),
      ),
    );
  });
});

describe('targets', () => {
  const modules = (targets: string | string[]): string[] => loraModules(config, targets);

  test('a name selects modules that end with it after a dot', () => {
    expect(modules(['q_proj'])).toEqual(layers.map(layer => `${layer}.self_attn.q_proj`));
    expect(modules(['mlp.up_proj'])).toEqual(layers.map(layer => `${layer}.mlp.up_proj`));
    expect(modules(['model.layers.1.mlp.up_proj'])).toEqual(['model.layers.1.mlp.up_proj']);
    expect(modules(['v_proj', 'q_proj', 'self_attn.q_proj'])).toEqual(
      layers.flatMap(layer => [`${layer}.self_attn.q_proj`, `${layer}.self_attn.v_proj`]),
    );
  });

  test('a string is a regular expression for the full name', () => {
    expect(modules('.*\\.1\\..*_proj')).toHaveLength(7);
    expect(modules('model\\.layers\\.0\\.mlp\\.(up|gate)_proj')).toEqual([
      'model.layers.0.mlp.gate_proj',
      'model.layers.0.mlp.up_proj',
    ]);
    expect(modules('.*q_proj|.*v_proj')).toHaveLength(4);
  });

  test('all-linear selects all linear layers except the head, in any case', () => {
    expect(modules('All-Linear')).toHaveLength(14);
    expect(loraModules({ ...config, tiedHead: false }, 'all-linear')).toEqual(modules('all-linear'));
    expect(modules('.*_proj')).toEqual(modules('all-linear'));
  });

  const refused = (targets: string | string[]): string =>
    refusalOf(() => loraModules({ ...config, tiedHead: false }, targets));

  test.each([
    ['q_proj', '"q_proj" selects none'],
    [['proj'], '"proj" selects none'],
    [['q_proj', 'c_attn'], '"c_attn" selects none'],
    [['input_layernorm'], '"input_layernorm" selects none'],
    [['lm_head'], '"lm_head" selects lm_head, for which adapters are not supported'],
    ['.*', '".*" selects model.embed_tokens, for which adapters are not supported'],
    ['(q_proj', '"(q_proj" is not a valid regular expression'],
    [
      [],
      'is empty: set it to all-linear or to names among q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj',
    ],
  ])('%j is refused', (targets, sentence) => {
    expect(refused(targets)).toContain(sentence);
  });
});

describe('initial values', () => {
  const start = (seed: number): Weights => {
    const weights = new Weights([
      { name: 'other.weight', dims: [3] },
      ...loraSpecs({ ...tinyConfig, hiddenSize: 400, intermediateSize: 100 }, { ...lora, targets: 'all-linear' }),
    ]);
    weights.flat.fill(7);
    initializeLora(weights, new RandomStream(seed));
    return weights;
  };

  test('A is uniform in ±1/√in, B is zero, and nothing else changes', () => {
    const weights = start(1);
    for (const [module, width] of [
      ['model.layers.0.self_attn.q_proj', 400],
      ['model.layers.0.mlp.down_proj', 100],
    ] as const) {
      const a = weights.view(`${module}.lora_A.weight`);
      const scaled = a.map(x => x * Math.sqrt(width));
      expect(Math.max(...scaled.map(Math.abs))).toBeLessThanOrEqual(1);
      expect(Math.max(...scaled)).toBeGreaterThan(0.95);
      expect(Math.min(...scaled)).toBeLessThan(-0.95);
      expect(scaled.reduce((sum, x) => sum + x * x, 0) / a.length).toBeCloseTo(1 / 3, 1);
      expect(weights.view(`${module}.lora_B.weight`).every(x => x === 0)).toBe(true);
    }
    expect([...weights.view('other.weight')]).toEqual([7, 7, 7]);
  });

  test('are determined by the seed', () => {
    expect(start(1).flat).toEqual(start(1).flat);
    expect(start(1).flat).not.toEqual(start(2).flat);
  });

  test('the scale is alpha over rank', () => expect(loraScale({ alpha: 6, rank: 4 })).toBe(1.5));
});
