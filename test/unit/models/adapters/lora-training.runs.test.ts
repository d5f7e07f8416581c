// Adapter training against peft (test/golden/make/lora.py): log-probs, losses, the gradient of every factor and one
// AdamW step, over a base that stays in its files. Without the adapter the same files are the reference policy. Dropout
// is seeded, unbiased, identical when activations are recomputed, and active in training only.
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Graph } from '../../../../extension/engine/graph/graph';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session, float32 } from '../../../../extension/engine/session/session';
import type { Tensor } from '../../../../extension/engine/session/session';
import { DecoderParameters } from '../../../../extension/models/decoder/decoder-parameters';
import { initializeLora, loraSpecs } from '../../../../extension/models/adapters/lora';
import type { LoraOptions } from '../../../../extension/models/adapters/lora';
import { mapDecoder } from '../../../../extension/models/decoder/mapped-decoder';
import { adaptedNetwork, frozenNetwork, trainedNetwork } from '../../../../extension/models/decoder/networks';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import { Policy } from '../../../../extension/models/policy';
import type { Network } from '../../../../extension/models/graphs/policy-graphs';
import { Weights } from '../../../../extension/models/weights/weights';
import { tensorsOf } from '../../../golden/tensors';
import {
  goldenFolder,
  goldenLoss,
  goldenOptimizer,
  goldenSamples,
  relativeError,
  wholeBatch,
} from '../../../support/small-models';

afterEach(() => vi.restoreAllMocks());

const threads = { threads: 1 };
const samples = goldenSamples('qwen2');
const base = async (): Promise<Network> => {
  const decoder = await mapDecoder(goldenFolder('qwen2'));
  return frozenNetwork(decoder.config, decoder);
};
const frozenPolicy = async (): Promise<Policy> =>
  new Policy(await base(), new HostParameters(new Weights([]), threads), threads);

/** A policy with an adapter: peft's, with changed options. */
async function adapted(name: string, changed: Partial<LoraOptions> = {}, checkpointed = false): Promise<Policy> {
  const network = await base();
  const { lora, factors } = await readAdapter(join('test/golden/lora', name), {
    config: network.config,
    folder: goldenFolder('qwen2'),
  });
  const options = { ...threads, checkpointed };
  return new Policy(adaptedNetwork(network, { ...lora, ...changed }), new HostParameters(factors, options), options);
}

describe.each(['all-linear', 'q-v'])('the adapter %s', name => {
  const golden = tensorsOf(join('test/golden/lora', name, 'golden.safetensors'));
  const of = (key: string): Float32Array => golden.get(key)!.data;
  const length = samples[0].ids.length;
  const row = (key: string, r: number): number[] => [0, ...of(key).subarray(r * (length - 1), (r + 1) * (length - 1))];

  it('scores as peft does', async () => {
    const { logprobs, entropies } = await (await adapted(name)).score(samples, wholeBatch, goldenLoss.temperature);
    samples.forEach((_, r) => {
      expect(relativeError(logprobs[r], row('logprobs', r))).toBeLessThan(1e-5);
      expect(relativeError(entropies[r], row('entropy', r))).toBeLessThan(1e-5);
    });
  });

  it.each([
    { maxRows: 1, checkpointed: false },
    { maxRows: 2, checkpointed: true },
    { maxRows: 3, checkpointed: false },
  ])(
    'has the gradients and the AdamW step of peft: $maxRows rows a pass, checkpointed: $checkpointed',
    async ({ maxRows, checkpointed }) => {
      const policy = await adapted(name, {}, checkpointed);
      const metrics = await policy.update(samples, { maxRows, maxTokens: Infinity }, goldenLoss, goldenOptimizer);
      const [pg, entropy, kl] = of('loss');
      expect(metrics.pg_loss).toBeCloseTo(pg, 5);
      expect(metrics.entropy_loss).toBeCloseTo(entropy, 5);
      expect(metrics.kl_loss).toBeCloseTo(kl, 5);
      expect(relativeError([metrics.grad_norm], of('norm'))).toBeLessThan(1e-4);
      const [gradient, weights] = [await policy.bank.readGradient(), await policy.bank.read()];
      const factors = [...golden.keys()].filter(key => key.startsWith('grad.')).map(key => key.slice('grad.'.length));
      expect(policy.bank.specs.map(spec => spec.name).sort()).toEqual(factors.sort());
      for (const factor of factors) {
        expect(relativeError(gradient.view(factor), of(`grad.${factor}`)), factor).toBeLessThan(1e-4);
        expect(relativeError(weights.view(factor), of(`stepped.${factor}`)), factor).toBeLessThan(1e-4);
      }
    },
  );
});

describe('the reference of an adapted policy', () => {
  const golden = tensorsOf(join(goldenFolder('qwen2'), 'golden.safetensors')).get('logprobs')!.data;

  it('is its base', async () => {
    const { logprobs } = await (await frozenPolicy()).score(samples, wholeBatch, goldenLoss.temperature);
    const length = samples[0].ids.length;
    logprobs.forEach((scored, r) => {
      const expected = golden.subarray(r * (length - 1), (r + 1) * (length - 1));
      expect(relativeError(scored.subarray(1), expected)).toBeLessThan(1e-5);
    });
  });

  it('equals a new adapter at its start, bit by bit', async () => {
    const network = await base();
    const lora: LoraOptions = { rank: 3, alpha: 9, dropout: 0, targets: 'all-linear' };
    const factors = new Weights(loraSpecs(network.config, lora));
    initializeLora(factors, new RandomStream(2));
    const policy = new Policy(adaptedNetwork(network, lora), new HostParameters(factors, threads), threads);
    const reference = await (await frozenPolicy()).score(samples, wholeBatch, 1);
    expect(await policy.score(samples, wholeBatch, 1)).toEqual(reference);
    // Only B moves in the first step: the gradient of A goes through B, which is zero.
    await policy.update(samples, wholeBatch, goldenLoss, goldenOptimizer);
    const gradient = await policy.bank.readGradient();
    for (const { name } of gradient.specs)
      expect(
        gradient.view(name).some(x => x !== 0),
        name,
      ).toBe(name.endsWith('lora_B.weight'));
    expect(await policy.score(samples, wholeBatch, 1)).not.toEqual(reference);
  });
});

describe('dropout', () => {
  const gradientOf = async (policy: Policy, seed: number): Promise<Float32Array> => {
    await policy.update(samples, wholeBatch, goldenLoss, { ...goldenOptimizer, lr: 0 }, seed);
    return (await policy.bank.readGradient()).flat.slice();
  };

  it('is the same for the same seed, and differs for another', async () => {
    const policy = await adapted('all-linear', { dropout: 0.3 });
    const first = await gradientOf(policy, 1);
    expect(await gradientOf(policy, 1)).toEqual(first);
    expect(relativeError(await gradientOf(policy, 2), first)).toBeGreaterThan(0.05);
    expect(relativeError(await gradientOf(await adapted('all-linear'), 1), first)).toBeGreaterThan(0.05);
  });

  it('is the same when activations are recomputed', async () => {
    const [kept, again] = await Promise.all([false, true].map(again => adapted('all-linear', { dropout: 0.3 }, again)));
    expect(relativeError(await gradientOf(again, 5), await gradientOf(kept, 5))).toBeLessThan(1e-5);
  });

  it('does not affect scores', async () => {
    const [dropping, whole] = [await adapted('q-v', { dropout: 0.5 }), await adapted('q-v')];
    expect(await dropping.score(samples, wholeBatch, 1)).toEqual(await whole.score(samples, wholeBatch, 1));
  });

  it('is drawn anew by the seed of each supervised step', async () => {
    const policy = await adapted('q-v', { dropout: 0.5 });
    const loss = (seed: number): Promise<number> =>
      policy.trainSupervised(samples, wholeBatch, { ...goldenOptimizer, lr: 0 }, seed);
    const first = await loss(1);
    expect(await loss(1)).toBe(first);
    expect(await loss(2)).not.toBe(first);
  });

  it("keeps an adapter's contribution unbiased, for every token and output", async () => {
    // A single layer as the graphs compute it, with the dropout noise that a policy feeds.
    const config = { ...(await base()).config, layers: 1 };
    const lora: LoraOptions = { rank: 4, alpha: 4, dropout: 0.4, targets: ['q_proj'] };
    const network = adaptedNetwork(trainedNetwork(config), lora);
    const module = 'model.layers.0.self_attn.q_proj';
    const width = config.hiddenSize;
    const tokens = 6;
    const stream = new RandomStream(4);
    const random = (...dims: number[]): Tensor =>
      float32(
        Float32Array.from({ length: dims.reduce((a, b) => a * b) }, () => stream.normal()),
        dims,
      );
    const outputs = async (dropout: number, noise: Record<string, Tensor>[]): Promise<Float32Array[]> => {
      const g = new Graph('layer');
      const parameters = new DecoderParameters(g, { ...network.plan, adapter: { ...network.plan.adapter!, dropout } });
      g.output('y', parameters.linear(module, g.input('x', 'float32', ['tokens', width])));
      const session = await Session.create(g, threads);
      const runs: Float32Array[] = [];
      for (const feeds of noise) runs.push((await session.run({ ...fixed, ...feeds })).y.data as Float32Array);
      return runs;
    };
    const out = config.heads * config.headSize;
    const fixed = {
      x: random(tokens, width),
      [`${module}.weight`]: random(out, width),
      [`${module}.bias`]: random(out),
      [`${module}.lora_A.weight`]: random(lora.rank, width),
      [`${module}.lora_B.weight`]: random(out, lora.rank),
    };

    const run = vi.spyOn(Session.prototype, 'run');
    const policy = await adapted('q-v', { dropout: lora.dropout });
    const short = [{ ids: Int32Array.of(1, 2, 3, 4, 5, 6), mask: Uint8Array.of(0, 1, 1, 1, 1, 1) }];
    const seeds = 400;
    for (let seed = 0; seed < seeds; seed++)
      await policy.trainSupervised(short, wholeBatch, { ...goldenOptimizer, lr: 0 }, seed);
    const noise = run.mock.calls.flatMap(([{ dropout_rows, dropout_columns }]) =>
      dropout_rows ? [{ dropout_rows, dropout_columns }] : [],
    );
    run.mockRestore();
    expect(noise).toHaveLength(seeds);

    const dropped = await outputs(lora.dropout, noise);
    const [whole] = await outputs(0, [{}]);
    let squares = 0;
    whole.forEach((expected, i) => {
      const mean = dropped.reduce((sum, y) => sum + y[i], 0) / seeds;
      const variance = dropped.reduce((sum, y) => sum + (y[i] - mean) ** 2, 0) / (seeds - 1);
      expect(variance).toBeGreaterThan(0);
      const z = (mean - expected) / Math.sqrt(variance / seeds);
      squares += z ** 2;
      expect(Math.abs(z), `output ${i}`).toBeLessThan(4.5); // exceeded by any output once in a thousand times
    });
    // Joint deviation as expected by chance: the mean of z² is 1, within 3 σ, as if a token's outputs were `rank`
    // independent numbers.
    expect(Math.abs(squares / whole.length - 1)).toBeLessThan(3 * Math.sqrt(2 / (tokens * lora.rank)));
  });
});
