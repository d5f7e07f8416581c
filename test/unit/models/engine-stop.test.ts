// Stopping the engine, counted in units of work: a running call ends after its current unit, later calls are refused,
// and weights and moments keep or regain their previous state. Also the memory of packed passes: one is alive at a
// time.
import { beforeEach, describe, expect, it } from 'vitest';
import type { CriticSample, WeightedSample } from '../../../extension/engine/training-samples';
import type { OptimizerOptions, PolicyLossOptions } from '../../../extension/engine/loss-options';
import { RunStopped } from '../../../extension/engine/run-stopped';
import { EngineUndo } from '../../../extension/models/engine-undo';
import { PolicyEngine } from '../../../extension/models/policy-engine';
import { goldenFolder, plainLoad, plainSampling } from '../../support/small-models';

const optimizer: OptimizerOptions = { lr: 0.01, betas: [0.9, 0.99], eps: 1e-8, weight_decay: 0.01, grad_clip: 1 };
const loss: PolicyLossOptions = {
  ...{ clip_ratio_low: 0.2, clip_ratio_high: 0.28, clip_ratio_c: 3, entropy_coeff: 0.001, use_kl_loss: false },
  ...{ kl_loss_coef: 0, kl_loss_type: 'k3', loss_agg_mode: 'token-mean', temperature: 1 },
};
const criticLoss = { cliprange_value: 0.5, loss_agg_mode: 'token-mean' as const };
/** One sample per pass. */
const alone = { maxTokens: 6, maxRows: 1 };
const samples = Array.from({ length: 8 }, (_, i): WeightedSample & CriticSample => {
  const ids = Int32Array.of(3 + i, 14, 15, 9, 26, 5);
  const numbers = (x: number): Float32Array => new Float32Array(ids.length).fill(x);
  return {
    ...{ ids, mask: Uint8Array.of(0, 0, 1, 1, 1, 1), old_logprobs: numbers(-4), ref_logprobs: numbers(-4) },
    ...{ advantages: numbers(1), weights: numbers(0.25), old_values: numbers(0), returns: numbers(1) },
  };
});

/** Number of started units, and the number after which the engine is stopped. */
let begun: number;
let stopAt: number;
let engine: PolicyEngine;

beforeEach(async () => {
  [begun, stopAt] = [0, Infinity];
  const unit = (): void => {
    if (++begun === stopAt) engine.stop();
  };
  engine = new PolicyEngine(unit, unit);
  const modelFolder = goldenFolder('qwen2');
  await engine.load({ ...plainLoad, modelFolder, referenceFolder: modelFolder, critic: true, seed: 7 });
});

const calls: Record<string, () => Promise<unknown>> = {
  score: () => engine.score('actor', samples, alone, 1),
  inspect: () => engine.inspect(samples, alone, 1, 2),
  crossScore: () =>
    engine.crossScore(
      samples.map(({ ids }) => ids),
      samples.map(({ ids }) => ids.slice(1)),
      alone,
      1,
    ),
  update: () => engine.update(samples, alone, loss, optimizer, 0),
  analyseGradients: () => engine.analyseGradients([[samples, samples]], alone, loss, 0),
  values: () => engine.values(samples, alone),
  updateCritic: () => engine.updateCritic(samples, alone, criticLoss, optimizer),
  trainSupervised: () => engine.trainSupervised(samples, alone, optimizer, 0),
  generate: () =>
    engine.generate([{ row: 'a', append: [3, 14], seed: 1 }], {
      ...plainSampling,
      max_new_tokens: 40,
      max_model_len: 60,
      stop_token_ids: [],
    }),
};

const state = async () => ({ state: await engine.state(), parameters: await engine.parameters() });

describe.each(Object.keys(calls))('%s', name => {
  it('reports more than one unit, and ends with the unit during which it is stopped', async () => {
    await calls[name]();
    expect(begun).toBeGreaterThan(3);
    if (name === 'generate') await engine.release(['a']);
    const before = await state();
    [begun, stopAt] = [0, 3];
    await expect(calls[name]()).rejects.toThrow(RunStopped);
    expect(begun).toBe(3);
    expect(await state()).toEqual(before); // the optimizer step in progress is not applied
    await expect(calls[name]()).rejects.toThrow(RunStopped);
    expect(begun).toBe(3);
  });
});

it("reverts the optimizer steps of a stopped training step bit by bit, including the critic's", async () => {
  await calls.update();
  await calls.updateCritic();
  const before = await state();
  await engine.remember();
  await calls.updateCritic();
  await calls.update();
  expect(await state()).not.toEqual(before);
  engine.stop();
  expect(await engine.rollBack()).toBe(true);
  expect(await state()).toEqual(before);
});

it('finishes a training step with an optimizer step that cannot be reverted', async () => {
  const unit = (): void => {
    if (++begun === stopAt) engine.stop();
  };
  engine = new PolicyEngine(unit, unit, new EngineUndo(0));
  await engine.load({ ...plainLoad, modelFolder: goldenFolder('qwen2'), critic: true, seed: 7 });
  await engine.remember();
  await calls.updateCritic();
  [begun, stopAt] = [0, 2];
  await calls.updateCritic();
  await calls.update();
  expect(begun).toBe(2 * samples.length);
  await expect(calls.generate()).rejects.toThrow(RunStopped);
  await engine.remember();
  await expect(calls.update()).rejects.toThrow(RunStopped);
});

it('has nothing to revert when no optimizer step was made', async () => {
  await engine.remember();
  await calls.score();
  const before = await state();
  expect(await engine.rollBack()).toBe(true);
  expect(await state()).toEqual(before);
});
