// The engine over the network against a real server: SkyRL's JAX backend. Sampling equals scoring, one step of every
// loss equals the local engine's with the same adapter, a state is resumed, the adapter comes down, and a killed server
// is noticed. Prepared by test/tinker/install.mjs.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aggregationWeights } from '../../extension/algorithms/loss-aggregation';
import { lossModes, type LossAggMode } from '../../extension/algorithms/policy-loss-options';
import type { NamedTensor } from '../../extension/engine/engine';
import type { PolicyLossOptions } from '../../extension/engine/loss-options';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import type { WeightedSample } from '../../extension/engine/training-samples';
import { modelFiles } from '../../extension/models/weights/model-files';
import { readTextShape } from '../../extension/models/weights/model-folder';
import { PolicyEngine } from '../../extension/models/policy-engine';
import { TinkerEngine } from '../../extension/models/tinker/tinker-engine';
import { plainLoad, relativeError } from '../support/small-models';
import { installed, RealServer } from './real-server';

const budget = { maxTokens: 4096, maxRows: 64 };
const lora = { rank: 8, alpha: 32, dropout: 0, targets: 'all-linear' } as const;
/** Adam whose step is minus the gradient, scaled: its ε is far above every gradient. */
const plainStep = { lr: 1e4, betas: [0, 0] as [number, number], eps: 1e3, weight_decay: 0, grad_clip: 1e9 };

const loss = (more: Partial<PolicyLossOptions>): PolicyLossOptions => ({
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0.5,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 1,
  ...more,
});

/** Samples with gaps in their masks; old log-probs around those of a random model, so that some tokens are clipped. */
function samplesOf(mode: LossAggMode): WeightedSample[] {
  const stream = new RandomStream(11);
  const lengths = [20, 28, 24, 28];
  const masks = lengths.map(length => Uint8Array.from({ length }, (_, i) => Number(i > 7 && i % 5 !== 0)));
  const counts = masks.map(mask => mask.reduce((sum, bit) => sum + bit, 0));
  const weights = aggregationWeights(counts, mode, 28);
  return masks.map((mask, row) => {
    const around = (middle: number) => Float32Array.from(mask, () => middle + stream.uniform() - 0.5);
    return {
      ids: Int32Array.from(mask, () => stream.integer(800)),
      mask,
      old_logprobs: around(-6.7),
      ref_logprobs: around(-6.7),
      advantages: around(0),
      weights: new Float32Array(mask.length).fill(weights[row]),
    };
  });
}

/** Values of all tensors, by name. */
const flat = (tensors: readonly NamedTensor[]): number[] =>
  [...tensors].sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap(({ data }) => [...data]);

/** Projections that the JAX backend fuses: each group has one factor A, exported under every name. */
const fused = [
  ['q_proj', 'k_proj', 'v_proj'],
  ['gate_proj', 'up_proj'],
];

/**
 * The step of the server's parameters that equals these steps of the local ones. A factor A that projections share
 * receives the sum of their gradients.
 */
function asOnServer(moved: ReadonlyMap<string, number[]>): Map<string, number[]> {
  return new Map(
    [...moved].map(([name, own]) => {
      const group = name.includes('lora_A') ? fused.find(names => names.some(part => name.includes(part))) : undefined;
      if (!group) return [name, own];
      const part = group.find(each => name.includes(each))!;
      const all = group.map(other => moved.get(name.replace(part, other))!);
      return [name, own.map((_, i) => all.reduce((sum, values) => sum + values[i], 0))];
    }),
  );
}

/** What a step changed, by name. */
function movedBetween(before: readonly NamedTensor[], after: readonly NamedTensor[]): Map<string, number[]> {
  const start = new Map(before.map(({ name, data }) => [name, data]));
  return new Map(after.map(({ name, data }) => [name, Array.from(data, (value, i) => value - start.get(name)![i])]));
}

describe.skipIf(!installed)(`a real Tinker server${installed ? '' : ' (not installed: needs Python 3.12)'}`, () => {
  const server = new RealServer();
  const engines: TinkerEngine[] = [];
  beforeAll(() => server.start());
  afterAll(async () => {
    await Promise.all(engines.map(engine => engine.stop()));
    await server.remove();
  });

  async function opened(
    vocabSize?: number,
  ): Promise<{ engine: TinkerEngine; model: Awaited<ReturnType<TinkerEngine['load']>> }> {
    const engine = new TinkerEngine({
      url: server.url,
      key: null,
      timeoutMs: 60_000,
      outageMs: 3000,
      connections: 16,
      baseModel: null,
      resumes: false,
      keptVersions: 2,
      onWarning: () => undefined,
      ...readTextShape(server.model),
      ...(vocabSize !== undefined && { vocabSize }),
      decode: ids => ids.join(' '),
      onOutage: () => undefined,
    });
    engines.push(engine);
    return { engine, model: await engine.load({ ...plainLoad, modelFolder: server.model, lora, seed: 5 }) };
  }

  /** The local engine with the adapter that the server has now. */
  async function localTwin(engine: TinkerEngine, name: string): Promise<PolicyEngine> {
    const folder = join(server.folder, name);
    mkdirSync(folder);
    for (const [file, bytes] of Object.entries(await modelFiles(engine, { lora }, server.model, 'base')))
      writeFileSync(join(folder, file), bytes);
    const local = new PolicyEngine();
    await local.load({ ...plainLoad, modelFolder: server.model, adapterFolder: folder, lora: null });
    return local;
  }

  let main: TinkerEngine;
  test('its reduction of losses is measured, and its adapter is described', async () => {
    const { engine, model } = await opened();
    main = engine;
    expect(model.lora).toEqual(lora);
    expect(model.deviceCheck).toContain('whose losses are a mean over samples and a mean over tokens');
    expect(engine.facts.keepsVersions).toBe(false); // a published version is the adapter in training
  });

  test('a result that is not finite is a failure with a reason, not an outage', async () => {
    const outOfVocabulary = new Int32Array(8).fill(799);
    outOfVocabulary[3] = 10 ** 6;
    const { engine } = await opened(10 ** 7);
    const sample = { ids: outOfVocabulary, mask: Uint8Array.from(outOfVocabulary, (_, i) => Number(i > 0)) };
    const scored = engine.score('actor', [sample]).then(
      ({ logprobs }) => logprobs[0].every(Number.isFinite),
      (error: Error) => error.message,
    );
    expect(await scored).toMatch(/refused forward: .*(not finite|Unknown error|NaN|JSON)/);
  });

  test('scoring a sampled response gives the log-probs of its sampling', async () => {
    const sampling = {
      max_new_tokens: 12,
      stop_token_ids: [795],
      stop: [],
      max_model_len: 64,
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      do_sample: true,
    };
    const prompts = [
      [794, 12, 55, 300],
      [794, 7, 9, 301],
    ];
    const rows = prompts.map((append, i) => ({ row: `r${i}`, append, seed: i }));
    const generated = await main.generate(rows, sampling);
    const samples = generated.map(({ ids }, i) => ({
      ids: Int32Array.from([...prompts[i], ...ids]),
      mask: Uint8Array.from([...prompts[i].map(() => 0), ...ids.map(() => 1)]),
    }));
    const { logprobs } = await main.score('actor', samples);
    generated.forEach(({ logprobs: drawn }, i) =>
      drawn.forEach((logprob, t) => expect(logprobs[i][prompts[i].length + t]).toBeCloseTo(logprob, 4)),
    );
    const again = await main.generate(
      rows.map(row => ({ ...row, row: `${row.row} again` })),
      sampling,
    );
    expect(again.map(({ ids }) => ids)).toEqual(generated.map(({ ids }) => ids));
  });

  test('one step of every loss equals the local engine with the same adapter', async () => {
    // A first step makes both factors of the adapter differ from 0.
    await main.update(samplesOf('token-mean'), budget, loss({}), { ...plainStep, lr: plainStep.lr / 10 });
    const start = await main.state();
    let round = 0;
    for (const [loss_mode, use_kl_loss, loss_agg_mode] of [
      ...lossModes.map(mode => [mode, false, 'token-mean'] as const),
      ['vanilla', true, 'seq-mean-token-sum'],
      ['vanilla', true, 'seq-mean-token-mean'],
      ['gspo', true, 'seq-mean-token-sum-norm'],
    ] as const) {
      const options = loss({ policy_loss: { loss_mode }, use_kl_loss, loss_agg_mode });
      const samples = samplesOf(loss_agg_mode);
      await main.restore(start);
      const local = await localTwin(main, `twin-${round++}`);
      const before = await local.parameters();
      const theirs = await main.update(samples, budget, options, plainStep);
      const ours = await local.update(samples, budget, options, plainStep, 0);
      for (const name of ['pg_loss', 'pg_clipfrac', 'ppo_kl', 'kl_loss'] as const)
        if (name in ours) expect(theirs[name]).toBeCloseTo(ours[name], 5);
      const after = await main.parameters();
      const [there, here] = [movedBetween(before, after), asOnServer(movedBetween(before, await local.parameters()))];
      expect([...there.keys()].sort()).toEqual([...here.keys()].sort());
      // Relative to the whole step: parameters are float32, so a small change of a large one is known to few digits.
      const names = [...here.keys()];
      const together = (steps: ReadonlyMap<string, number[]>) => names.flatMap(name => steps.get(name)!);
      expect(relativeError(together(there), together(here))).toBeLessThan(2e-5);
      for (const name of names) expect(Math.hypot(...here.get(name)!), name).toBeGreaterThan(1e-4);
    }
  });

  test('the adapter that comes down gives the same log-probs in the local engine', async () => {
    const samples = samplesOf('token-mean');
    const local = await localTwin(main, 'came-down');
    const [there, here] = [await main.score('actor', samples), await local.score('actor', samples, budget, 1)];
    there.logprobs.forEach((row, i) =>
      row.forEach((logprob, t) => expect(Math.abs(logprob - here.logprobs[i][t])).toBeLessThan(2e-5)),
    );
  });

  test('a new model resumes a saved state with its optimizer', async () => {
    const adam = { lr: 1e-3, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1e9 };
    const samples = samplesOf('token-mean');
    await main.update(samples, budget, loss({}), adam);
    const state = await main.state();
    const { engine: resumed } = await opened();
    await resumed.restore(state);
    await main.update(samples, budget, loss({}), adam);
    await resumed.update(samples, budget, loss({}), adam);
    expect(flat(await resumed.parameters())).toEqual(flat(await main.parameters()));
  });

  test('a killed server ends the engine’s call with its address', async () => {
    await server.kill();
    await expect(main.score('reference', samplesOf('token-mean'))).rejects.toThrow('does not answer');
    await server.start();
  });
});
