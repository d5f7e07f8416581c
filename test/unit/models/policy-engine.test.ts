// The engine as used by the training loop: reference and actor, critic, state for checkpoints, and errors on misuse.
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import type { LoadOptions, MomentFormat } from '../../../extension/engine/load-options';
import type { OptimizerOptions, PolicyLossOptions } from '../../../extension/engine/loss-options';
import { PolicyEngine } from '../../../extension/models/policy-engine';
import { writeSafetensors } from '../../../extension/models/weights/safetensors-writer';
import { temporaryFolder } from '../../support/temporary-folder';
import { goldenFolder, plainLoad, plainSampling, relativeError, wholeBatch } from '../../support/small-models';

const folder = temporaryFolder();
const optimizer: OptimizerOptions = { lr: 0.01, betas: [0.9, 0.99], eps: 1e-8, weight_decay: 0.01, grad_clip: 1 };
const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0.001,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'k3',
  loss_agg_mode: 'token-mean',
  temperature: 1,
};
const ids = Int32Array.of(3, 14, 15, 9, 26, 5);
const sample = { ids, mask: Uint8Array.of(0, 0, 1, 1, 1, 1) };
const numbers = (x: number): Float32Array => new Float32Array(ids.length).fill(x);
const training = {
  ...sample,
  old_logprobs: numbers(-4),
  ref_logprobs: numbers(-4),
  advantages: numbers(1),
  weights: numbers(0.25),
};
const valued = { ...sample, old_values: numbers(0), returns: numbers(1), weights: numbers(0.25) };

async function load(changed: Partial<LoadOptions> = {}): Promise<PolicyEngine> {
  const engine = new PolicyEngine();
  const modelFolder = goldenFolder('qwen2');
  await engine.load({ ...plainLoad, modelFolder, referenceFolder: modelFolder, critic: true, seed: 7, ...changed });
  return engine;
}

async function trainStep(engine: PolicyEngine): Promise<void> {
  await engine.update([training], wholeBatch, loss, optimizer, 0);
  await engine.updateCritic([valued], wholeBatch, { cliprange_value: 0.5, loss_agg_mode: 'token-mean' }, optimizer);
}

const scored = async (engine: PolicyEngine, which: 'actor' | 'reference'): Promise<number[]> =>
  (await engine.score(which, [sample], wholeBatch, 1)).logprobs.flatMap(row => [...row]);

it('reports what it loaded', async () => {
  const loaded = await new PolicyEngine().load({
    ...plainLoad,
    modelFolder: goldenFolder('llama'),
  });
  const llama = 61 * 24 * 2 + 24 + 2 * (2 * 24 + 24 * 24 * 2 + 2 * 6 * 24 + 3 * 40 * 24);
  expect(loaded).toMatchObject({ parameters: llama, maxPositions: 64 });
});

it('trains the actor and leaves the reference unchanged', async () => {
  const engine = await load();
  const before = await scored(engine, 'reference');
  expect(await scored(engine, 'actor')).toEqual(before);
  await trainStep(engine);
  expect(await scored(engine, 'reference')).toEqual(before);
  expect(await scored(engine, 'actor')).not.toEqual(before);
});

it('generates with the weights of the last step', async () => {
  const engine = await load();
  const sampling = { ...plainSampling, do_sample: false, max_new_tokens: 4 };
  const generate = async () => (await engine.generate([{ row: 'a', append: [...ids], seed: 1 }], sampling))[0];
  const first = await generate();
  await engine.release(['a']);
  await engine.trainSupervised([sample], wholeBatch, { ...optimizer, lr: 0.3 }, 0);
  expect((await generate()).logprobs).not.toEqual(first.logprobs);
});

it('gives the same scores in passes of any size, in order', async () => {
  const engine = await load();
  const single = { maxTokens: Infinity, maxRows: 1 };
  const other = { ids: Int32Array.of(1, 2, 3), mask: Uint8Array.of(0, 1, 0) };
  const together = await engine.score('actor', [sample, other], wholeBatch, 0.7);
  const apart = await engine.score('actor', [sample, other], single, 0.7);
  expect(apart.logprobs.map(row => row.length)).toEqual([6, 3]);
  apart.logprobs.forEach((row, i) => expect(relativeError(row, together.logprobs[i])).toBeLessThan(1e-5));
  const values = await engine.values([sample, other], single);
  (await engine.values([sample, other], wholeBatch)).forEach((row, i) =>
    expect(relativeError(values[i], row)).toBeLessThan(1e-4),
  );
});

it.each<MomentFormat>(['float32', 'int8'])(
  'continues from its parameters and state as if it had not been stopped, moments in %s',
  async format => {
    const moments = { actor: format, critic: format };
    const whole = await load({ moments });
    for (let step = 0; step < 2; step++) await trainStep(whole);
    const state = structuredClone(await whole.state());
    expect([state.actor.format, state.critic!.format]).toEqual([format, format]);
    const tensors = (await whole.parameters()).map(({ name, dims, data }) => ({ name, shape: dims, data }));
    cpSync(join(goldenFolder('qwen2'), 'config.json'), join(folder(), 'config.json'));
    await writeSafetensors(join(folder(), 'model.safetensors'), tensors);
    const resumed = await load({ modelFolder: folder(), seed: 99, moments });
    await resumed.restore(state);
    for (const engine of [whole, resumed]) await trainStep(engine);
    expect(await resumed.parameters()).toEqual(await whole.parameters());
    expect(await resumed.state()).toEqual(await whole.state());
    expect(await resumed.values([sample], wholeBatch)).toEqual(await whole.values([sample], wholeBatch));
  },
);

it('returns copies: changing them does not affect the model', async () => {
  const engine = await load();
  const before = await scored(engine, 'actor');
  for (const { data } of await engine.parameters()) data.fill(0);
  const state = await engine.state();
  state.critic!.weights.fill(0);
  expect(await scored(engine, 'actor')).toEqual(before);
  expect((await engine.values([sample], wholeBatch))[0].some(v => v !== 0)).toBe(true);
});

describe('a refusal of misuse', () => {
  it('comes before a model is loaded', async () => {
    await expect(new PolicyEngine().release([])).rejects.toThrow('engine: no model is loaded');
    await expect(new PolicyEngine().score('actor', [], wholeBatch, 1)).rejects.toThrow('engine: no model is loaded');
  });

  it('comes when a missing reference or critic is requested', async () => {
    const engine = await load({ referenceFolder: null, critic: false });
    await expect(engine.score('reference', [sample], wholeBatch, 1)).rejects.toThrow(
      'engine: no reference policy was loaded',
    );
    await expect(engine.values([sample], wholeBatch)).rejects.toThrow('engine: no critic was loaded');
    expect(await engine.state()).not.toHaveProperty('critic');
  });

  it('comes for a state of another model', async () => {
    const other = await load({ modelFolder: goldenFolder('llama'), referenceFolder: null });
    const engine = await load();
    await expect(engine.restore(await other.state())).rejects.toThrow(UserError);
    await expect(engine.restore(await other.state())).rejects.toThrow(
      /moments are for \d+ parameters, .+: resume with the model that the checkpoint was saved from/,
    );
  });

  it('comes for a state with moments of another format', async () => {
    const other = await load({ moments: { actor: 'int8', critic: 'float32' } });
    const engine = await load();
    const sentence =
      /^checkpoint: the saved optimizer moments are int8, but the run uses float32: resume with optim.moments set to int8$/;
    await expect(engine.restore(await other.state())).rejects.toThrow(UserError);
    await expect(engine.restore(await other.state())).rejects.toThrow(sentence);
  });

  it('comes for a reference of another shape', async () => {
    await expect(load({ referenceFolder: goldenFolder('llama') })).rejects.toThrow(UserError);
    await expect(load({ referenceFolder: goldenFolder('llama') })).rejects.toThrow(
      /architecture of the reference policy differs/,
    );
  });

  it('comes for a folder without a model', async () => {
    writeFileSync(join(folder(), 'config.json'), '{}');
    await expect(load({ modelFolder: folder() })).rejects.toThrow(UserError);
  });
});
