// The decoder against transformers on small random checkpoints of each family (test/golden/make/decoders.py), read from
// model folders, some sharded or in half precision: logits, log-probs, entropy, the policy loss, every parameter's
// gradient and one AdamW step, each within 1e-4 relative.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readDecoder } from '../../../../extension/models/weights/model-folder';
import type { Policy, PolicyOptions } from '../../../../extension/models/policy';
import { tensorsOf } from '../../../golden/tensors';
import {
  goldenFolder,
  goldenLoss,
  goldenOptimizer,
  goldenSamples,
  relativeError,
  trainedPolicy,
  wholeBatch,
} from '../../../support/small-models';

describe.each(['qwen2', 'llama', 'qwen3', 'llama3', 'qwen2-yarn'])('%s', family => {
  const golden = tensorsOf(join(goldenFolder(family), 'golden.safetensors'));
  const load = async (options?: PolicyOptions): Promise<Policy> => {
    const { config, weights } = await readDecoder(goldenFolder(family));
    return trainedPolicy(config, weights, options);
  };
  const of = (name: string): Float32Array => golden.get(name)!.data;
  const [b, t] = golden.get('ids')!.dims;
  /** Golden vectors cover tokens 1…t−1; these arrays also have an entry for token 0. */
  const shifted = (name: string, row: number): Float32Array =>
    Float32Array.from([0, ...of(name).subarray(row * (t - 1), (row + 1) * (t - 1))]);
  const samples = goldenSamples(family);

  it('scores as transformers does', async () => {
    const { logprobs, entropies } = await (await load()).score(samples, wholeBatch, 0.7);
    for (let row = 0; row < b; row++) {
      expect(relativeError(logprobs[row], shifted('logprobs', row))).toBeLessThan(1e-5);
      expect(relativeError(entropies[row], shifted('entropy', row))).toBeLessThan(1e-5);
    }
  });

  it('has the logits of transformers, up to a constant, over the whole vocabulary', async () => {
    const [, , vocab] = golden.get('logits')!.dims;
    const mask = new Uint8Array(t + 1).fill(1, t);
    const followed = Array.from({ length: vocab }, (_, next) => ({
      ids: Int32Array.of(...samples[0].ids, next),
      mask,
    }));
    const { logprobs } = await (await load()).score(followed, wholeBatch, 1);
    const logits = of('logits').subarray((t - 1) * vocab, t * vocab);
    const constant = Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0));
    const expected = logits.map(x => x - constant);
    expect(
      relativeError(
        logprobs.map(row => row[t]),
        expected,
      ),
    ).toBeLessThan(1e-5);
  });

  it.each([
    { maxRows: 1, checkpointed: false },
    { maxRows: 2, checkpointed: true },
    { maxRows: 3, checkpointed: false },
  ])(
    'has the gradients and the AdamW step of PyTorch with $maxRows rows a pass, checkpointed $checkpointed',
    async ({ maxRows, checkpointed }) => {
      const policy = await load({ threads: 1, checkpointed });
      const metrics = await policy.update(samples, { maxRows, maxTokens: Infinity }, goldenLoss, goldenOptimizer);
      const [pg, entropy, kl] = of('loss');
      expect(metrics.pg_loss).toBeCloseTo(pg, 5);
      expect(metrics.entropy_loss).toBeCloseTo(entropy, 5);
      expect(metrics.kl_loss).toBeCloseTo(kl, 5);
      expect(relativeError([metrics.grad_norm], of('norm'))).toBeLessThan(1e-4);
      const gradient = await policy.bank.readGradient();
      const weights = await policy.bank.read();
      for (const { name } of policy.bank.specs) {
        expect(relativeError(gradient.view(name), of(`grad.${name}`)), name).toBeLessThan(1e-4);
        expect(relativeError(weights.view(name), of(`stepped.${name}`)), name).toBeLessThan(1e-4);
      }
    },
  );
});
