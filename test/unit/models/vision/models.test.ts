// Vision-language models against transformers on small random checkpoints (test/golden/make/vision_models.py): image
// features of pictures of several sizes, log-probs of conversations with two pictures, one or none, and gradients of
// decoder and encoder.
import { beforeAll, describe, expect, it } from 'vitest';
import { Session } from '../../../../extension/engine/session/session';
import { planPasses } from '../../../../extension/models/graphs/pass-plan';
import type { Pass, Sample } from '../../../../extension/models/graphs/pass-plan';
import { scoreGraph } from '../../../../extension/models/graphs/policy-graphs';
import { featureWidth } from '../../../../extension/models/vision/encoder-config';
import { encodeGraph } from '../../../../extension/models/vision/encoder-graphs';
import { PictureEncoder } from '../../../../extension/models/vision/picture-encoder';
import { Policy } from '../../../../extension/models/policy';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { Weights } from '../../../../extension/models/weights/weights';
import { encoderFeeds } from '../../../../extension/models/vision/encoder-feeds';
import { goldenLoss, goldenOptimizer, relativeError } from '../../../support/small-models';
import { encodeAll, goldenName, goldenVision, runPass } from '../../../support/vision-models';
import type { GoldenVision } from '../../../support/vision-models';

const together = (samples: readonly Sample[]): Pass => ({
  shared: false,
  clusters: samples.map((_, i) => ({ members: [i], prefix: 0 })),
});
/** Entry 0 belongs to the first token, which has no log-prob. */
const shifted = (values: Float32Array): Float32Array => Float32Array.from([0, ...values]);

/** Parameters whose values after an AdamW step are in the golden files. */
const stepped = ['embed_tokens', 'layers.1.self_attn.o_proj', 'merger', 'modality_projection', 'patch_embed'];
const norm = (values: Float32Array): number => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'])('%s', family => {
  let golden: GoldenVision;
  beforeAll(async () => {
    golden = await goldenVision(family);
  });

  it('encodes pictures as transformers does, together and each alone', async () => {
    const { encoder, model, pictures, of } = golden;
    const session = await Session.create(encodeGraph(encoder, 'cpu'), { threads: 1 });
    try {
      for (const shown of [[0, 1], [1, 0], [0], [1]]) {
        const { feeds } = encoderFeeds(
          encoder.config,
          shown.flatMap(i => pictures[i].parts),
        );
        const { features } = await session.run({ ...feeds, ...model.encoder.feeds() });
        let at = 0;
        shown.forEach(i => {
          const size = pictures[i].features * featureWidth(encoder.config);
          const own = (features.data as Float32Array).subarray(at, (at += size));
          expect(relativeError(own, of(`features.${i}`)), `picture ${i} of ${shown.join()}`).toBeLessThan(1e-5);
        });
      }
    } finally {
      await session.release();
    }
  });

  it('gives tokens the positions of transformers', () => {
    const { samples, shown, of } = golden;
    shown.forEach((pictures, row) => {
      if (pictures.length > 0) expect([...samples[row].pictures!.positions]).toEqual([...of(`positions.${row}`)]);
    });
  });

  it('scores conversations as transformers does, together and each alone', async () => {
    const { samples, of } = golden;
    const features = await encodeAll(golden);
    for (const batch of [samples, ...samples.map(sample => [sample])]) {
      const { scattered } = await runPass(golden, scoreGraph, together(batch), batch, features);
      scattered('logprob').forEach((logprobs, i) => {
        const row = samples.indexOf(batch[i]);
        expect(relativeError(logprobs, shifted(of(`logprobs.${row}`))), `conversation ${row}`).toBeLessThan(1e-5);
      });
    }
  });

  it('scores the last tokens of conversations, which the last layer computes alone', async () => {
    const { samples, of } = golden;
    const from = samples[0].ids.length - 5;
    const tails = samples.map(sample => ({ ...sample, mask: new Uint8Array(sample.ids.length).fill(1, from) }));
    const { scattered, trimmed } = await runPass(golden, scoreGraph, together(tails), tails, await encodeAll(golden));
    expect(trimmed).toBe(true);
    scattered('logprob').forEach((logprobs, row) =>
      expect(relativeError(logprobs.subarray(from), of(`logprobs.${row}`).subarray(from - 1))).toBeLessThan(1e-5),
    );
  });

  it('computes the shared beginning of two conversations with the same pictures once', async () => {
    const { samples, of } = golden;
    const other = { ...samples[0], ids: samples[0].ids.map((id, i) => (i < 30 ? id : (id + 1) % 50)) };
    const cut = samples[0].pictures!.features.findIndex((feature, i) => i >= 30 && feature < 0);
    const pair = [samples[0], other];
    const [pass, ...rest] = planPasses(pair, { maxTokens: 1000, maxRows: 4 }, { token: 1000, pass: 1000 });
    expect(rest).toEqual([]);
    expect(pass).toMatchObject({ shared: true, clusters: [{ prefix: cut }] });
    const { scattered } = await runPass(golden, scoreGraph, pass, pair, await encodeAll(golden));
    expect(relativeError(scattered('logprob')[0], shifted(of('logprobs.0')))).toBeLessThan(1e-5);
  });

  it('shares no tokens of different pictures', () => {
    const { samples } = golden;
    const first = samples[0].pictures!;
    const features = first.features.map(index => (index < 0 ? index : index + 7));
    const pair = [samples[0], { ...samples[0], pictures: { ...first, features } }];
    const passes = planPasses(pair, { maxTokens: 1000, maxRows: 4 }, { token: 1000, pass: 1000 });
    const prefixes = passes.flatMap(({ clusters }) => clusters.map(({ prefix }) => prefix));
    expect(Math.max(...prefixes)).toBeLessThanOrEqual(first.features.findIndex(index => index >= 0));
  });

  it.each([
    { checkpointed: false, maxRows: 3, maxScores: undefined },
    { checkpointed: true, maxRows: 1, maxScores: undefined },
    { checkpointed: false, maxRows: 2, maxScores: 1 },
  ])(
    'has the gradients and the AdamW step of PyTorch: checkpointed $checkpointed, $maxRows rows a pass, $maxScores scores',
    async ({ checkpointed, maxRows, maxScores }) => {
      const { samples, encoder, model, network, pictures, of } = golden;
      const weights = new Weights([...model.decoder.specs, ...model.encoder.specs]);
      for (const part of [model.decoder, model.encoder])
        for (const { name } of part.specs) weights.view(name).set(part.view(name));
      const options = { threads: 1, checkpointed };
      const bank = new HostParameters(weights, options);
      const policy = new Policy(network, bank, options);
      const eyes = new PictureEncoder(encoder, bank, { ...options, maxScores });
      const images = await eyes.features(pictures.flatMap(({ parts }) => parts));
      // At the policy's own log-probs, the gradient of the policy loss is that of −Σ advantage · log-prob.
      const weighted = samples.map((sample, row) => ({
        ...sample,
        old_logprobs: shifted(of(`logprobs.${row}`)),
        ref_logprobs: new Float32Array(sample.ids.length),
        advantages: shifted(of(`weight.${row}`)).map(x => -x),
        weights: new Float32Array(sample.ids.length).fill(1),
      }));
      const loss = { ...goldenLoss, entropy_coeff: 0, use_kl_loss: false };
      const budget = { maxRows, maxTokens: Infinity };
      const metrics = await policy.update(weighted, budget, loss, goldenOptimizer, 0, undefined, images);
      await eyes.release();
      expect(relativeError([metrics.grad_norm], of('norm'))).toBeLessThan(1e-4);
      const gradient = await bank.readGradient();
      for (const { name } of bank.specs) {
        // Without rotary positions, softmax does not depend on the keys' bias: its gradient is 0, up to rounding.
        const isZero = encoder.config.kind === 'siglip' && name.endsWith('k_proj.bias');
        const [found, expected] = [gradient.view(name), of(`grad.${goldenName(family, name)}`)];
        if (isZero) expect(norm(found), name).toBeLessThan(1e-4);
        else expect(relativeError(found, expected), name).toBeLessThan(1e-4);
      }
      const steppedNames = bank.specs.map(({ name }) => name).filter(name => stepped.some(part => name.includes(part)));
      expect(steppedNames.length).toBeGreaterThan(4);
      for (const name of steppedNames)
        expect(relativeError(weights.view(name), of(`stepped.${goldenName(family, name)}`)), name).toBeLessThan(1e-4);
    },
  );
});
