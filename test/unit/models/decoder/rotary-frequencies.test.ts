// Rotary frequencies and tables against transformers (test/golden/make/rotary.py), with the settings of Qwen2.5, Qwen3
// and Llama 3.x.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import type { DecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { rotaryFrequencies, rotaryTable } from '../../../../extension/models/decoder/rotary-frequencies';

interface Golden {
  positions: number[];
  cases: { theta: number; scaling: object; inverse: number[]; scale: number; cos: number[][]; sin: number[][] }[];
}
const golden = JSON.parse(readFileSync('test/golden/rotary/frequencies.json', 'utf8')) as Golden;
const base = {
  model_type: 'llama',
  vocab_size: 8,
  hidden_size: 256,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  max_position_embeddings: 131072,
  rms_norm_eps: 1e-6,
};
const parse = (change: object): DecoderConfig => parseDecoderConfig({ ...base, ...change }, 'config.json');

describe.each(golden.cases)('theta $theta, $scaling', ({ theta, scaling, inverse, scale, cos, sin }) => {
  const shape = parse({ rope_parameters: { ...scaling, rope_theta: theta } });

  it('has the frequencies and the scale of transformers', () => {
    const ours = rotaryFrequencies(shape);
    expect(ours.inverse.length).toBe(inverse.length);
    ours.inverse.forEach((x, i) => expect(Math.abs(x / inverse[i] - 1)).toBeLessThan(5e-7));
    expect(ours.scale).toBeCloseTo(scale, 12);
  });

  it('has its cosines and sines, also at large positions', () => {
    const table = rotaryTable(shape, Math.max(...golden.positions) + 1);
    golden.positions.forEach((position, row) => {
      for (let i = 0; i < 32; i++) {
        expect(Math.abs(table.cos[position * 32 + i] - cos[row][i])).toBeLessThan(2e-5);
        expect(Math.abs(table.sin[position * 32 + i] - sin[row][i])).toBeLessThan(2e-5);
      }
    });
  });
});

describe('the two spellings of config.json', () => {
  const yarn = { factor: 4, original_max_position_embeddings: 32768 };
  const asNow = { rope_parameters: { rope_type: 'yarn', rope_theta: 1e6, ...yarn } };

  it.each([
    ['transformers 4’s', { rope_theta: 1e6, rope_scaling: { rope_type: 'yarn', ...yarn } }],
    ['its older name of the type', { rope_theta: 1e6, rope_scaling: { type: 'yarn', ...yarn } }],
    ['a factor left to the lengths', { rope_theta: 1e6, rope_scaling: { type: 'yarn', ...yarn, factor: undefined } }],
    [
      'the original length outside',
      { rope_theta: 1e6, rope_scaling: { type: 'yarn', factor: 4 }, original_max_position_embeddings: 32768 },
    ],
  ])('%s has the same meaning', (_, old) => {
    const { ropeTheta, ropeScaling } = parse(asNow);
    expect(parse(old)).toMatchObject({ ropeTheta, ropeScaling });
  });
});
