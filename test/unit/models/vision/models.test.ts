// Vision-language models against transformers on small random checkpoints (test/golden/make/vision_models.py): image
// features of pictures of several sizes, log-probs of conversations with two pictures, one or none, and gradients of
// decoder and encoder.
import { beforeAll, describe, expect, it } from 'vitest';
import { Session, float32 } from '../../../../extension/engine/session/session';
import { planPasses } from '../../../../extension/models/graphs/pass-plan';
import type { Pass, Sample } from '../../../../extension/models/graphs/pass-plan';
import { crossEntropyGraph, gradientName, scoreGraph } from '../../../../extension/models/graphs/policy-graphs';
import { featureWidth } from '../../../../extension/models/vision/encoder-config';
import { encodeGraph, encoderGradientGraph } from '../../../../extension/models/vision/encoder-graphs';
import { encoderFeeds } from '../../../../extension/models/vision/encoder-feeds';
import { relativeError } from '../../../support/small-models';
import { encodeAll, goldenVision, runOnce, runPass } from '../../../support/vision-models';
import type { GoldenVision } from '../../../support/vision-models';

const together = (samples: readonly Sample[]): Pass => ({
  shared: false,
  clusters: samples.map((_, i) => ({ members: [i], prefix: 0 })),
});
/** Entry 0 belongs to the first token, which has no log-prob. */
const shifted = (values: Float32Array): Float32Array => Float32Array.from([0, ...values]);

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
      const { scattered } = await runPass(golden, scoreGraph, together(batch), batch, { features });
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
    const { scattered, trimmed } = await runPass(golden, scoreGraph, together(tails), tails, {
      features: await encodeAll(golden),
    });
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
    const { scattered } = await runPass(golden, scoreGraph, pass, pair, { features: await encodeAll(golden) });
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
    { checkpointed: false, batches: [[0, 1]] },
    { checkpointed: true, batches: [[0, 1]] },
    { checkpointed: false, batches: [[0], [1]] },
  ])(
    'has the gradients of PyTorch: checkpointed $checkpointed, pictures $batches',
    async ({ checkpointed, batches }) => {
      const { samples, encoder, model, pictures, of } = golden;
      const { outputs } = await runPass(golden, crossEntropyGraph, together(samples), samples, {
        features: await encodeAll(golden),
        weights: samples.map((_, row) => shifted(of(`weight.${row}`)).map(x => -x)),
        pictures: 'trained',
        checkpointed,
      });
      const ofFeatures = outputs[gradientName('features')].data as Float32Array;
      const sums = model.encoder.like();
      let from = 0;
      for (const batch of batches) {
        const { feeds, counts } = encoderFeeds(
          encoder.config,
          batch.flatMap(i => pictures[i].parts),
        );
        const size = featureWidth(encoder.config);
        const to = from + size * counts.reduce((sum, count) => sum + count, 0);
        const unit = encoder.config.mergeSize ** 2;
        const given = new Float32Array((feeds.patches.dims[0] / unit) * size);
        given.set(ofFeatures.subarray(from, to));
        from = to;
        const found = await runOnce(encoderGradientGraph(encoder, 'cpu', checkpointed), {
          ...feeds,
          ...model.encoder.feeds(),
          feature_gradients: float32(given, [given.length / size, size]),
        });
        for (const { name } of sums.specs) {
          const view = sums.view(name);
          (found[gradientName(name)].data as Float32Array).forEach((x, i) => (view[i] += x));
        }
      }
      for (const { name } of model.decoder.specs) {
        const prefix = family.startsWith('qwen') ? 'model.language_model.' : 'model.text_model.';
        const stored = name.replace('model.', prefix);
        const found = outputs[gradientName(name)].data as Float32Array;
        expect(relativeError(found, of(`grad.${stored}`)), name).toBeLessThan(1e-4);
      }
      for (const { name } of sums.specs) {
        const expected = of(`grad.${name.replace(/^visual/, 'model.visual')}`);
        // Without rotary positions, softmax does not depend on the keys' bias: its gradient is 0, up to rounding.
        if (name.endsWith('k_proj.bias')) expect(norm(sums.view(name))).toBeLessThan(1e-4);
        else expect(relativeError(sums.view(name), expected), name).toBeLessThan(1e-4);
      }
    },
  );
});
