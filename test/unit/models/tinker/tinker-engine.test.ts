// The engine over the network against a peer with an exact model: log-probs, gradients of every loss under both
// reductions, publication, stops, checkpoints, and what an unreliable network does to it.
import { afterEach, describe, expect, test } from 'vitest';
import { policyLossGradient } from '../../../../extension/algorithms/policy-loss';
import { klKinds, lossAggModes, lossModes } from '../../../../extension/algorithms/policy-loss-options';
import type { PolicyLossOptions } from '../../../../extension/engine/loss-options';
import type { CriticSample, WeightedSample } from '../../../../extension/engine/training-samples';
import type { BigramModel } from '../../../support/bigram-model';
import {
  actorOf,
  budget,
  endAll,
  load,
  loss,
  plainStep,
  samplesOf,
  sampling,
  started,
  vocabSize,
} from '../../../support/served-engine';
import { WeightsUncertain } from '../../../../extension/engine/weights-uncertain';
import type { TinkerPeer } from '../../../support/tinker-peer';

afterEach(endAll);

/** The gradient of a loss in the table, by the chain rule from dL/dlogπ. */
function tableGradient(model: BigramModel, samples: readonly WeightedSample[], options: PolicyLossOptions): number[] {
  const logprobs = samples.map(({ ids }) => [0, ...model.logprobs([...ids.slice(0, -1)], [...ids.slice(1)])]);
  const slopes = policyLossGradient(
    samples.map((sample, i) => ({ ...sample, logprobs: logprobs[i] })),
    options,
    7,
  );
  const gradient = new Array<number>(vocabSize ** 2).fill(0);
  samples.forEach(({ ids, mask }, row) =>
    mask.forEach((bit, token) => {
      if (!bit) return;
      const last = ids[token - 1];
      for (let next = 0; next < vocabSize; next++) {
        const [probability] = model.logprobs([last], [next]).map(Math.exp);
        gradient[last * vocabSize + next] += slopes[row][token] * (Number(next === ids[token]) - probability);
      }
    }),
  );
  return gradient;
}

describe('an update', () => {
  const reductions = [
    { tokens: 'sum', samples: 'sum' },
    { tokens: 'mean', samples: 'mean' },
    { tokens: 'mean', samples: 'sum' },
  ] as const;
  // The loss does not depend on the server's reduction, so only one mode is tried with each.
  const [sum, ...others] = reductions;
  const cases = [...lossModes.map(mode => [sum, mode] as const), ...others.map(other => [other, 'vanilla'] as const)];
  test.each(cases)('takes the gradient of the loss computed here: %o, %s', async (reduction, loss_mode) => {
    for (const loss_agg_mode of lossAggModes)
      for (const kl of loss_mode === 'vanilla' ? [null, ...klKinds] : ([null, 'low_var_kl'] as const)) {
        const { peer, engine } = await started(reduction);
        await engine.load(load);
        const options = loss({
          policy_loss: { loss_mode },
          loss_agg_mode,
          ...(kl && { use_kl_loss: true, kl_loss_type: kl }),
        });
        const samples = samplesOf(loss_agg_mode);
        const before = actorOf(peer).copy();
        const expected = tableGradient(before, samples, options);
        await engine.update(samples, budget, options, plainStep);
        actorOf(peer).table.forEach((after, i) => expect(before.table[i] - after).toBeCloseTo(expected[i], 5));
        await engine.stop();
        await peer.stop();
      }
  });

  test('reports the loss, its parts, the gradient norm and an estimate of the entropy', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const samples = samplesOf('token-mean');
    const norm = Math.hypot(...tableGradient(actorOf(peer), samples, loss()));
    const metrics = await engine.update(samples, budget, loss(), plainStep);
    expect(metrics.grad_norm).toBeCloseTo(norm, 6);
    expect(Object.keys(metrics).sort()).toEqual([
      'entropy_estimate',
      'entropy_loss',
      'grad_norm',
      'lr',
      'pg_clipfrac',
      'pg_clipfrac_lower',
      'pg_loss',
      'ppo_kl',
      'skipped',
    ]);
    expect(metrics.entropy_estimate).toBeGreaterThan(0);
  });

  test('sends a large batch in parts, and no step if a part is refused', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const [sample] = samplesOf('token-mean');
    const length = 60_000; // three of them exceed a request's tokens
    const long = Array.from({ length: 3 }, (_, k) => ({
      ...sample,
      ids: Int32Array.from({ length }, (_, t) => (t * (k + 1)) % vocabSize),
      mask: new Uint8Array(length).fill(1, length - 3),
      ...Object.fromEntries(
        (['old_logprobs', 'ref_logprobs', 'advantages', 'weights'] as const).map(key => [
          key,
          new Float32Array(length).fill(key === 'advantages' ? 1 : key === 'weights' ? 0.1 : -2),
        ]),
      ),
    }));
    const expected = tableGradient(actorOf(peer).copy(), long, loss());
    const from = peer.requests.length;
    const { grad_norm } = await engine.update(long, budget, loss(), plainStep);
    const sent = peer.requests.slice(from).map(({ path }) => path);
    expect(sent.filter(path => /backward|optim/.test(path))).toEqual([
      'forward_backward',
      'forward_backward',
      'optim_step',
    ]);
    expect(grad_norm).toBeCloseTo(0.1 * 9 * Math.hypot(...expected), 6); // a weight of 0.1 instead of 1/9

    let parts = 0;
    peer.fault = path =>
      path === 'forward_backward' && ++parts === 2 ? { status: 400, body: { detail: 'no room' } } : undefined;
    const steps = peer.sent('optim_step');
    await expect(engine.update(long, budget, loss(), plainStep)).rejects.toThrow('no room');
    expect(peer.sent('optim_step')).toBe(steps);
  });

  test('has uncertain weights if its gradient fails after the step was sent', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const samples = samplesOf('token-mean');
    await engine.score('actor', samples);
    let failed = false;
    peer.fault = path => {
      if (path !== 'retrieve_future' || failed) return undefined;
      failed = true;
      return { status: 400, body: { detail: 'out of memory' } };
    };
    const made = engine.update(samples, budget, loss(), plainStep);
    await expect(made).rejects.toThrow(WeightsUncertain);
    await expect(made).rejects.toThrow('out of memory');
  });

  test('reads log-probs again only if the weights have changed since they were scored', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const samples = samplesOf('token-mean');
    await engine.score('actor', samples);
    const forwards = () => peer.requests.filter(({ path }) => path === 'forward').length;
    const scored = forwards();
    await engine.update(samples, budget, loss(), plainStep);
    expect(forwards()).toBe(scored);
    await engine.update(samples, budget, loss(), plainStep);
    expect(forwards()).toBe(scored + 1);
  });

  test('raises the entropy of the distribution with an entropy bonus', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const model = actorOf(peer);
    const entropy = () => {
      const all = Array.from({ length: vocabSize }, (_, next) => model.logprobs([1], [next])[0]);
      return -all.reduce((sum, logprob) => sum + Math.exp(logprob) * logprob, 0);
    };
    const before = entropy();
    for (let round = 0; round < 40; round++) {
      const rows = await engine.generate(
        Array.from({ length: 16 }, (_, i) => ({ row: `${round}/${i}`, append: [1], seed: round * 16 + i })),
        { ...sampling, max_new_tokens: 1 },
      );
      const samples = rows.map(({ ids }): WeightedSample => {
        const zeros = new Float32Array(2);
        return {
          ids: Int32Array.of(1, ids[0]),
          mask: Uint8Array.of(0, 1),
          old_logprobs: zeros,
          ref_logprobs: zeros,
          advantages: zeros,
          weights: new Float32Array(2).fill(1 / 16),
        };
      });
      await engine.update(samples, budget, loss({ entropy_coeff: 1 }), { ...plainStep, lr: 0.3 * plainStep.eps });
    }
    expect(entropy()).toBeGreaterThan(before + 0.05);
  });
});

describe('sampling and scoring', () => {
  test('agree on the log-prob of every sampled token, over two turns', async () => {
    const { engine } = await started();
    await engine.load(load);
    const first = await engine.generate([{ row: 'a', append: [1, 2, 3], seed: 7 }], sampling);
    const second = await engine.generate([{ row: 'a', append: [4], seed: 8 }], sampling);
    const ids = Int32Array.from([1, 2, 3, ...first[0].ids, 4, ...second[0].ids]);
    const mask = Uint8Array.from([0, 0, 0, ...first[0].ids.map(() => 1), 0, ...second[0].ids.map(() => 1)]);
    const { logprobs } = await engine.score('actor', [{ ids, mask }]);
    const sampled = [0, 0, 0, ...first[0].logprobs, 0, ...second[0].logprobs];
    logprobs[0].forEach((logprob, token) => expect(logprob).toBeCloseTo(sampled[token], 6));
  });

  test('the same seed gives the same tokens', async () => {
    const { engine } = await started();
    await engine.load(load);
    const of = async (row: string, seed: number) =>
      (await engine.generate([{ row, append: [1], seed }], sampling))[0].ids;
    expect(await of('a', 2 ** 40 + 5)).toEqual(await of('b', 2 ** 40 + 5));
  });

  test.each([{ logprobs: [0, 0, 0] }, { logprobs: undefined }, { logprobs: null }])(
    'log-probs that a server leaves out are scored: %o',
    async ({ logprobs }) => {
      const { peer, engine } = await started();
      await engine.load(load);
      const sequence = { stop_reason: 'length', tokens: [3, 4, 5], logprobs };
      const expected = actorOf(peer).logprobs([1, 3, 4], [3, 4, 5]);
      const last = () => peer.requests.filter(({ path }) => path !== 'retrieve_future').at(-1)!.path;
      peer.fault = path =>
        path === 'retrieve_future' && last() === 'asample'
          ? { status: 200, body: { sequences: [sequence] } }
          : undefined;
      const [row] = await engine.generate([{ row: 'a', append: [1], seed: 7 }], { ...sampling, max_new_tokens: 3 });
      row.logprobs.forEach((logprob, i) => expect(logprob).toBeCloseTo(expected[i], 5));
    },
  );

  test('an answer without a sequence is refused by name', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    await engine.generate([{ row: 'a', append: [1], seed: 7 }], sampling); // publishes
    peer.fault = path => (path === 'retrieve_future' ? { status: 200, body: { sequences: [] } } : undefined);
    await expect(engine.generate([{ row: 'b', append: [1], seed: 7 }], sampling)).rejects.toThrow(
      'returned no sequence for a prompt',
    );
  });

  test('a stop string cuts the response after the token that completes it', async () => {
    const { engine } = await started();
    await engine.load(load);
    const { ids } = (await engine.generate([{ row: 'a', append: [1], seed: 3 }], sampling))[0];
    const text = ids
      .slice(1, 3)
      .map(id => String.fromCharCode(97 + id))
      .join('');
    const [cut] = await engine.generate([{ row: 'b', append: [1], seed: 3 }], { ...sampling, stop: [text] });
    expect(cut).toMatchObject({ ids: ids.slice(0, 3), finish: 'stop' });
  });

  test('sampling uses the newest weights, published once for each version', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const probed = peer.sent('save_weights_for_sampler');
    const published = () => peer.sent('save_weights_for_sampler') - probed;
    await engine.generate([{ row: 'a', append: [1], seed: 1 }], sampling);
    await engine.generate([{ row: 'b', append: [1], seed: 2 }], sampling);
    expect(published()).toBe(1);
    await engine.update(samplesOf('token-mean'), budget, loss(), plainStep);
    expect(published()).toBe(1);
    await engine.generate([{ row: 'c', append: [1], seed: 3 }], sampling);
    expect(published()).toBe(2);
  });

  test('the reference policy is the start, whatever was trained', async () => {
    const { engine } = await started();
    await engine.load(load);
    const [sample] = samplesOf('token-mean');
    const start = await engine.score('actor', [sample]);
    await engine.update([sample], budget, loss(), plainStep);
    expect(await engine.score('reference', [sample])).toEqual(start);
    expect(await engine.score('actor', [sample])).not.toEqual(start);
  });

  test('cross-scores are the sums of the text after each prompt', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const prompts = [[1, 2], [3]].map(ids => Int32Array.from(ids));
    const texts = [[4, 5, 6], [7]].map(ids => Int32Array.from(ids));
    const found = await engine.crossScore(prompts, texts);
    const model = actorOf(peer);
    texts.forEach((text, row) =>
      prompts.forEach((prompt, column) => {
        const expected = model.logprobs([prompt.at(-1)!, ...text.slice(0, -1)], [...text]);
        expect(found[row][column]).toBeCloseTo(
          expected.reduce((sum, x) => sum + x, 0),
          5,
        );
      }),
    );
  });

  test('an id outside the vocabulary is refused before anything is sent', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const sent = peer.requests.length;
    await expect(engine.generate([{ row: 'a', append: [99], seed: 1 }], sampling)).rejects.toThrow('the id 99');
    await expect(engine.score('actor', [{ ids: Int32Array.of(1, -1), mask: Uint8Array.of(0, 1) }])).rejects.toThrow(
      'the id -1',
    );
    expect(peer.requests.length).toBe(sent);
  });

  test('a mini-batch with numbers that are not finite is skipped, as in the local engine; others are trained', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const samples = samplesOf('token-mean');
    const [broken] = samplesOf('token-mean');
    broken.advantages.fill(NaN);
    await engine.remember();
    const { table } = actorOf(peer).copy();
    const before = peer.sent('forward_backward');
    expect(await engine.update([broken], budget, loss(), plainStep)).toMatchObject({ skipped: 1, grad_norm: NaN });
    expect(peer.sent('forward_backward')).toBe(before);
    expect(await engine.rollBack()).toBe(true);
    expect(await engine.update(samples, budget, loss(), plainStep)).toMatchObject({ skipped: 0 });
    const moved = actorOf(peer).copy();
    expect(moved.table).not.toEqual(table);
    expect(await engine.update([broken], budget, loss(), plainStep)).toMatchObject({ skipped: 1 });
    expect(actorOf(peer).table).toEqual(moved.table);
  });

  test('a log-prob that the server cannot express skips the update', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const [sample] = samplesOf('token-mean');
    const nothing = sample.ids.slice(1);
    const output = { logprobs: { data: Array.from(nothing, () => null) } };
    peer.fault = path =>
      path === 'retrieve_future' ? { status: 200, body: { loss_fn_outputs: [output] } } : undefined;
    const before = peer.sent('forward_backward');
    expect(await engine.update([sample], budget, loss(), plainStep)).toMatchObject({ skipped: 1 });
    expect(peer.sent('forward_backward')).toBe(before);
  });
});

describe('checkpoints', () => {
  test('a saved state is restored into a new model with weights and moments', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const samples = samplesOf('token-mean');
    const step = { lr: 0.1, betas: [0.9, 0.99] as [number, number], eps: 1e-8, weight_decay: 0.01, grad_clip: 1 };
    await engine.update(samples, budget, loss(), step);
    const state = await engine.state();
    await engine.update(samples, budget, loss(), step);
    const expected = actorOf(peer).table.slice();
    const { engine: other } = await started({}, { url: peer.url });
    await other.load(load);
    await other.restore(state);
    await other.update(samples, budget, loss(), step);
    expect(actorOf(peer).table).toEqual(expected);
  });

  test('the adapter comes down under the names of the local engine', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const [tensor] = await engine.parameters();
    expect(tensor).toMatchObject({
      name: 'model.layers.0.self_attn.q_proj.lora_A.weight',
      dims: [1, vocabSize],
    });
    expect(tensor.data).toEqual(Float32Array.from(actorOf(peer).trainedRows[0]));
  });
});

describe('connecting', () => {
  test.each([
    [{ key: 'k-1234567890' }, {}, 'requires an API key (Invalid API key)'],
    [{}, { baseModel: 'other/model' }, 'workbench.engine_model is other/model, but'],
    [{ models: 0 }, {}, 'Maximum number of LoRA adapters (0) reached'],
  ])('a refusal is one sentence with its reason: %o %o', async (options, settings, sentence) => {
    const { engine } = await started(options, settings);
    await expect(engine.load(load)).rejects.toThrow(sentence);
  });

  test('the key is sent with every request', async () => {
    const { engine } = await started({ key: 'k-1234567890' }, { key: 'k-1234567890' });
    await expect(engine.load(load)).resolves.toMatchObject({ provider: 'tinker', lora: { rank: 8, alpha: 32 } });
  });

  const withReference = { ...load, referenceFolder: 'anywhere' };

  test('a server without room for the reference policy is refused at the start', async () => {
    const { engine } = await started({ models: 1 });
    await expect(engine.load(withReference)).rejects.toThrow(
      /Maximum number of LoRA adapters \(1\) reached: raise the server's limit, .* do without the reference policy/,
    );
  });

  test('after a resume, the run waits for room and says so', async () => {
    const { peer, engine, outages } = await started({ models: 1 }, { resumes: true, outageMs: 1e6 });
    const loading = engine.load(withReference);
    await expect.poll(() => outages).toEqual(['Maximum number of LoRA adapters (1) reached']);
    peer.options.models = 2;
    await expect(loading).resolves.toMatchObject({ provider: 'tinker' });
    expect(outages.at(-1)).toBeNull();
  });

  test('after a resume, waiting for room ends with the limit of an outage', async () => {
    const { engine, outages } = await started({ models: 1 }, { resumes: true, outageMs: 100 });
    await expect(engine.load(withReference)).rejects.toThrow("raise the server's limit");
    expect(outages).toEqual(['Maximum number of LoRA adapters (1) reached']);
  });

  test('a state of another base model is refused by key, value and remedy', async () => {
    const { engine } = await started();
    await engine.load(load);
    const { server } = await engine.state();
    await expect(engine.restore({ server: { ...server, base: 'other/base' } })).rejects.toThrow(
      "workbench.engine_model is peer/bigram, but the checkpoint's adapter belongs to other/base: set it to other/base",
    );
  });

  test('layers are chosen as the server can, and another choice of the server is refused', async () => {
    const attention = { ...load.lora!, targets: ['q_proj', 'k_proj', 'v_proj', 'o_proj'] };
    const { peer, engine } = await started();
    const { lora } = await engine.load({ ...load, lora: attention });
    expect(lora).toMatchObject({ targets: attention.targets, alpha: 32 });
    expect(peer.requests.find(({ path }) => path === 'create_model')!.body.lora_config).toMatchObject({
      train_attn: true,
      train_mlp: false,
      train_unembed: false,
    });
    const { engine: other } = await started({ adapter: { train_attn: true, train_mlp: true } });
    await expect(other.load({ ...load, lora: attention })).rejects.toThrow(
      /lora.target_modules chooses other layers than the adapters of .* have \(train_mlp=true\): set it to all-linear/,
    );
  });
});

describe('a critic', () => {
  const withCritic = { ...load, critic: true };
  const valueLoss = { cliprange_value: 0.5, loss_agg_mode: 'token-mean' } as const;
  const criticOf = (peer: TinkerPeer) => [...peer.critics.values()].at(-1)!;

  /** Samples for the critic; with a small clip range some tokens are clipped. */
  const criticSamples = (mode: PolicyLossOptions['loss_agg_mode']): CriticSample[] =>
    samplesOf(mode).map(({ ids, mask, weights, old_logprobs, advantages }) => ({
      ids,
      mask,
      weights,
      old_values: old_logprobs.map(value => value + 3),
      returns: advantages.map(value => 2 * value),
    }));

  test.each(lossAggModes)('takes the gradient of the value loss computed here: %s', async loss_agg_mode => {
    const { peer, engine } = await started({ critic: true });
    await engine.load(withCritic);
    criticOf(peer).table.forEach((_, i, table) => (table[i] = Math.sin(i)));
    const before = criticOf(peer).table.slice();
    const samples = criticSamples(loss_agg_mode);
    const values = await engine.values(samples);
    const expected = new Float64Array(vocabSize);
    samples.forEach(({ ids, mask, weights, old_values, returns }, row) =>
      mask.forEach((bit, token) => {
        if (!bit) return expect(values[row][token]).toBe(0);
        const value = before[ids[token - 1]];
        expect(values[row][token]).toBeCloseTo(value, 6);
        const held = Math.min(Math.max(value, old_values[token] - 0.5), old_values[token] + 0.5);
        const isClipped = (held - returns[token]) ** 2 > (value - returns[token]) ** 2;
        if (!isClipped) expected[ids[token - 1]] += weights[token] * (value - returns[token]);
      }),
    );
    const found = await engine.updateCritic(samples, budget, valueLoss, plainStep);
    criticOf(peer).table.forEach((after, i) => expect(before[i] - after).toBeCloseTo(expected[i], 5));
    expect(found.vf_clipfrac).toBeGreaterThan(0);
    expect(found).toMatchObject({ skipped: 0, lr: plainStep.lr });
    expect(found.grad_norm).toBeCloseTo(Math.hypot(...expected), 5);
  });

  test('is read again only after its optimizer step, and skips a loss that is not finite', async () => {
    const { peer, engine } = await started({ critic: true });
    await engine.load(withCritic);
    const samples = criticSamples('token-mean');
    await engine.values(samples);
    const forwards = peer.sent('forward');
    await engine.updateCritic(samples, budget, valueLoss, plainStep);
    expect(peer.sent('forward')).toBe(forwards);
    const { table } = criticOf(peer).copy();
    samples[0].returns.fill(NaN);
    expect(await engine.updateCritic(samples, budget, valueLoss, plainStep)).toMatchObject({ skipped: 1 });
    expect(peer.sent('forward')).toBe(forwards + 1);
    expect(criticOf(peer).table).toEqual(table);
  });

  test('is saved and restored with its optimizer', async () => {
    const { peer, engine } = await started({ critic: true });
    await engine.load(withCritic);
    const samples = criticSamples('token-mean');
    const step = { ...plainStep, lr: 0.1, betas: [0.9, 0.99] as [number, number], eps: 1e-8 };
    await engine.updateCritic(samples, budget, valueLoss, step);
    const state = await engine.state();
    await engine.updateCritic(samples, budget, valueLoss, step);
    const expected = criticOf(peer).table.slice();
    await engine.restore(state);
    await engine.updateCritic(samples, budget, valueLoss, step);
    expect(criticOf(peer).table).toEqual(expected);
    const { critic: _, ...server } = state.server;
    await expect(engine.restore({ server })).rejects.toThrow('adv_estimator is gae, but the checkpoint has no critic');
  });

  test('is refused by key, value and remedy where the server has none, and asked for only if it is needed', async () => {
    const { peer, engine } = await started();
    await expect(engine.load(withCritic)).rejects.toThrow(
      /adv_estimator is gae, but .* does not create a critic \(JaxBackend only supports model_role='policy', got 'critic'\): choose an estimator/,
    );
    await engine.stop();
    expect(peer.models.size).toBe(0);
    const { peer: other, engine: plain } = await started();
    await plain.load(load);
    const asked = (of: TinkerPeer) => of.requests.filter(({ body }) => 'model_role' in body).length;
    expect([asked(peer), asked(other)]).toEqual([1, 0]);
  });
});
