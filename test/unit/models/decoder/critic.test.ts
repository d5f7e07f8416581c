// The critic against PyTorch (test/golden/make/critic.py): values, clipped value loss, every gradient and one AdamW
// step; and its initialization from an actor.
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import type { Critic } from '../../../../extension/models/decoder/critic';
import { criticSpecs, criticWeights } from '../../../../extension/models/decoder/critic';
import { tensorsOf } from '../../../golden/tensors';
import { goldenConfig, goldenWeights, relativeError, trainedCritic, wholeBatch } from '../../../support/small-models';

const config = goldenConfig('qwen2');
const golden = tensorsOf('test/golden/critic/golden.safetensors');
const of = (name: string): Float32Array => golden.get(name)!.data;
const [b, t] = golden.get('ids')!.dims;
/** Golden vectors cover tokens 1…t−1; these arrays also have an entry for token 0. */
const shifted = (name: string, row: number): Float32Array =>
  Float32Array.from([0, ...of(name).subarray(row * (t - 1), (row + 1) * (t - 1))]);
const count = of('mask').reduce((sum, bit) => sum + bit, 0);
const samples = Array.from({ length: b }, (_, row) => ({
  ids: Int32Array.from(of('ids').subarray(row * t, (row + 1) * t)),
  mask: Uint8Array.from(shifted('mask', row)),
  old_values: shifted('old', row),
  returns: shifted('returns', row),
  weights: new Float32Array(t).fill(1 / count),
}));
const optimizer = {
  lr: 0.01,
  betas: [0.9, 0.999] as [number, number],
  eps: 1e-8,
  weight_decay: 0.01,
  grad_clip: 0.05,
};

function load(): Critic {
  const weights = criticWeights(config, goldenWeights('qwen2'), new RandomStream(1));
  weights.view('value_head.weight').set(of('head'));
  return trainedCritic(config, weights);
}

describe('the critic', () => {
  it("has PyTorch's values for tokens before they are seen", async () => {
    const values = await load().values(samples, wholeBatch);
    for (let row = 0; row < b; row++)
      expect(
        relativeError(
          values[row],
          shifted('values', row).map((v, i) => v * samples[row].mask[i]),
        ),
      ).toBeLessThan(1e-5);
  });

  it('does not depend on the token that it values, nor on later ones', async () => {
    const critic = load();
    const mask = Uint8Array.of(0, 0, 0, 1, 0);
    const [first, other] = await critic.values(
      [
        { ids: Int32Array.of(1, 2, 3, 4, 5), mask },
        { ids: Int32Array.of(1, 2, 3, 50, 9), mask },
      ],
      wholeBatch,
    );
    expect(first[3]).toBeCloseTo(other[3], 6);
  });

  it.each([1, 2, 3])('has the loss, gradients and AdamW step of PyTorch with %i rows a pass', async maxRows => {
    const critic = load();
    const options = { cliprange_value: 0.5, loss_agg_mode: 'token-mean' } as const;
    const metrics = await critic.update(samples, { maxTokens: Infinity, maxRows }, options, optimizer);
    expect(metrics.vf_loss).toBeCloseTo(of('loss')[0], 5);
    expect(metrics.vf_clipfrac).toBeCloseTo(of('clipfrac')[0], 6);
    expect(relativeError([metrics.grad_norm], of('norm'))).toBeLessThan(1e-4);
    const [gradient, weights] = [await critic.bank.readGradient(), await critic.bank.read()];
    for (const { name } of critic.bank.specs) {
      expect(relativeError(gradient.view(name), of(`grad.${name}`)), name).toBeLessThan(1e-4);
      expect(relativeError(weights.view(name), of(`stepped.${name}`)), name).toBeLessThan(1e-4);
    }
  });
});

describe('a new critic', () => {
  it.each(['qwen2', 'llama'])('has the %s actor’s trunk, and a seeded head near zero', family => {
    const actor = goldenWeights(family);
    const make = (seed: number) => criticWeights(goldenConfig(family), actor, new RandomStream(seed));
    const weights = make(1);
    const names = weights.specs.map(({ name }) => name);
    expect(names).toEqual(criticSpecs(goldenConfig(family)).map(({ name }) => name));
    expect(names).not.toContain('lm_head.weight');
    for (const name of names.filter(name => name.startsWith('model.')))
      expect(weights.view(name), name).toEqual(actor.view(name));
    const head = weights.view('value_head.weight');
    expect(head.length).toBe(goldenConfig(family).hiddenSize);
    expect(Math.hypot(...head)).toBeGreaterThan(0);
    expect(Math.max(...head.map(Math.abs))).toBeLessThan(0.01);
    expect(make(1).flat).toEqual(weights.flat);
    expect(make(2).view('value_head.weight')).not.toEqual(head);
  });

  it('shares no memory with the actor', () => {
    const actor = goldenWeights('qwen2');
    const weights = criticWeights(config, actor, new RandomStream(1));
    weights.flat.fill(0);
    expect(actor.flat.some(x => x !== 0)).toBe(true);
  });
});
