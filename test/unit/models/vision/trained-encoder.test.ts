// The engine with a trained vision encoder: an update changes encoder and projection; afterwards, everything that shows
// pictures uses the new weights, as an engine that loads them from a checkpoint does; reference policy and critic keep
// the pictures of the first weights; a stopped step is undone.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withMarks } from '../../../../extension/common/picture-mark';
import type { LoadOptions } from '../../../../extension/engine/load-options';
import type { UpdateMetrics } from '../../../../extension/engine/loss-options';
import type { WeightedSample } from '../../../../extension/engine/training-samples';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { isOfDecoder } from '../../../../extension/models/vision/stored-names';
import { modelFiles } from '../../../../extension/models/weights/model-files';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { pictureName } from '../../../../extension/node/picture-store';
import { goldenLoss, goldenOptimizer, plainLoad, plainSampling, wholeBatch } from '../../../support/small-models';
import { temporaryFolder } from '../../../support/temporary-folder';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';

const folder = temporaryFolder();
const lora = { rank: 2, alpha: 8, dropout: 0.1, targets: 'all-linear' };
const optimizer = { ...goldenOptimizer, lr: 0.02 };

/** Returns a sample that shows two pictures, and a function that opens an engine with other options. */
async function prepared(family: TinyVision, training: Partial<LoadOptions>) {
  const modelFolder = await makeVisionModel(folder(), family);
  const store = join(folder(), 'pictures');
  mkdirSync(store);
  const pictures = await Promise.all(
    ['board.png', 'odd.png'].map(async file => {
      const bytes = readFileSync(join('test/golden/vision/pictures', file));
      copyFileSync(join('test/golden/vision/pictures', file), join(store, pictureName(bytes)));
      const { width, height } = await decodePicture(bytes);
      return { name: pictureName(bytes), width, height };
    }),
  );
  const text = withMarks('Look: <image> then <image>.', pictures);
  const { ids, shows } = readTokenizer(modelFolder).shownPrompt([{ role: 'user', content: text }], '');
  const answer = [5, 6, 7, 8];
  const all = Int32Array.from([...ids, ...answer]);
  const zeros = (): Float32Array => new Float32Array(all.length);
  const sample: WeightedSample & { shows: typeof shows } = {
    ...{ ids: all, shows, mask: new Uint8Array(all.length).fill(1, ids.length) },
    ...{ old_logprobs: zeros(), ref_logprobs: zeros(), advantages: zeros().fill(1), weights: zeros().fill(0.25) },
  };
  const load: LoadOptions = {
    ...plainLoad,
    ...{ modelFolder, referenceFolder: modelFolder, encoderFolder: modelFolder, critic: true, trainsEncoder: true },
    ...{ pictures: { folder: store } },
    ...training,
  };
  const open = async (changed: Partial<LoadOptions> = {}) => {
    const engine = new PolicyEngine();
    return { engine, model: await engine.load({ ...load, ...changed }) };
  };
  return { modelFolder, sample, prompt: { append: [...ids], shows }, text: Int32Array.from(answer), open };
}

/** Everything that an engine computes about the sample. */
async function seenBy(
  engine: PolicyEngine,
  { sample, prompt, text }: Pick<Awaited<ReturnType<typeof prepared>>, 'sample' | 'prompt' | 'text'>,
) {
  const sampling = { ...plainSampling, do_sample: false, max_new_tokens: 6, max_model_len: 1000 };
  const generated = await engine.generate([{ row: 'a', ...prompt, seed: 1 }], sampling);
  await engine.release(['a']);
  return {
    generated: generated.map(({ ids, logprobs }) => ({ ids, logprobs })),
    actor: await engine.score('actor', [sample], wholeBatch, 1),
    inspected: await engine.inspect([sample], wholeBatch, 1, 3),
    crossed: await engine.crossScore([Int32Array.from(prompt.append)], [text], wholeBatch, 1, [prompt.shows]),
    reference: await engine.score('reference', [sample], wholeBatch, 1),
    values: await engine.values([sample], wholeBatch),
  };
}

const update = (engine: PolicyEngine, sample: WeightedSample): Promise<UpdateMetrics> =>
  engine.update([sample], wholeBatch, { ...goldenLoss, use_kl_loss: false }, optimizer, 1);

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3'] as const)('%s', family => {
  it.each([
    ['all weights', { lora: null }],
    ['adapters', { lora }],
  ])('trains the encoder: %s', async (_, training) => {
    const given = await prepared(family, training);
    const { engine, model } = await given.open();
    const first = await engine.parameters();
    const own = first.filter(({ name }) => !isOfDecoder(name));
    expect(own.length).toBeGreaterThan(5);
    expect(own.length).toBeLessThan(first.length);
    const before = await seenBy(engine, given);
    // Two steps, because B is zero at first, so A has no gradient yet.
    for (let step = 0; step < 2; step++) expect((await update(engine, given.sample)).grad_norm).toBeGreaterThan(0);
    const after = await seenBy(engine, given);

    for (const { name, data } of await engine.parameters()) {
      const old = first.find(tensor => tensor.name === name)!.data;
      // Rows of tables that no picture needs, and keys' biases, have no gradient; weight decay moves what is not zero.
      if (data.length > 1 && old.some(x => x !== 0)) expect(data, name).not.toEqual(old);
    }
    expect(after.actor.logprobs).not.toEqual(before.actor.logprobs);
    expect(after.reference).toEqual(before.reference);
    expect(after.values).toEqual(before.values);

    const saved = join(folder(), 'saved');
    mkdirSync(saved);
    const files = await modelFiles(engine, model, given.modelFolder, 'base');
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(saved, name), bytes);
    const resumed = await given.open(training.lora ? { adapterFolder: saved } : { modelFolder: saved });
    await resumed.engine.restore(await engine.state());
    expect(await resumed.engine.parameters()).toEqual(await engine.parameters());
    expect(await seenBy(resumed.engine, given)).toEqual(after);
    const [next, continued] = [await update(engine, given.sample), await update(resumed.engine, given.sample)];
    expect(continued).toEqual(next);
    expect(await seenBy(resumed.engine, given)).toEqual(await seenBy(engine, given));
  });

  // The two have different sizes: the numbers for dropout are as many as the widest layer has channels.
  it('has finite gradients of image features with dropout, with and without recomputing', async () => {
    const strong = { ...lora, dropout: 0.5 };
    const given = await prepared(family, { lora: strong });
    const engines = [await given.open(), await given.open({ checkpointed: true })];
    const norms: number[] = [];
    for (const { engine } of engines) {
      const first = await engine.parameters();
      // Two steps, because B is zero at first, so A has no gradient yet.
      for (let step = 0; step < 2; step++) norms.push((await update(engine, given.sample)).grad_norm);
      const trained = await engine.parameters();
      expect(trained.every(({ data }) => data.every(Number.isFinite))).toBe(true);
      expect(
        trained.some(({ name, data }, i) => !isOfDecoder(name) && data.some((x, j) => x !== first[i].data[j])),
      ).toBe(true);
    }
    expect(norms.every(norm => Number.isFinite(norm) && norm > 0)).toBe(true);
    expect(norms[2] / norms[0]).toBeCloseTo(1, 3);
  });

  it('shows the old pictures after an update that is undone', async () => {
    const given = await prepared(family, { lora });
    const { engine } = await given.open();
    await update(engine, given.sample);
    const before = await seenBy(engine, given);
    await engine.remember();
    await update(engine, given.sample);
    expect((await seenBy(engine, given)).actor).not.toEqual(before.actor);
    expect(await engine.rollBack()).toBe(true);
    expect(await seenBy(engine, given)).toEqual(before);
  });

  it('leaves a frozen encoder as it is', async () => {
    const given = await prepared(family, { lora: null, trainsEncoder: false });
    const { engine } = await given.open();
    expect((await engine.parameters()).every(({ name }) => isOfDecoder(name))).toBe(true);
  });

  it('measures gradients of decoder and encoder together', async () => {
    const given = await prepared(family, { lora: { ...lora, dropout: 0 } });
    const [{ engine }, { engine: other }] = [await given.open(), await given.open()];
    const { sample } = given;
    const loss = { ...goldenLoss, use_kl_loss: false, entropy_coeff: 0 };
    const { buckets } = await engine.analyseGradients([[[sample, sample, sample]]], wholeBatch, loss, 1);
    const { grad_norm } = await other.update([sample, sample, sample], wholeBatch, loss, optimizer, 1);
    expect(buckets[0].gradients[0].norm / grad_norm).toBeCloseTo(1, 4);
  });
});

it('refuses an adapter of the encoder if the encoder is frozen', async () => {
  const given = await prepared('qwen2_5_vl', { lora });
  const { engine, model } = await given.open();
  for (let step = 0; step < 2; step++) await update(engine, given.sample);
  const saved = join(folder(), 'saved');
  mkdirSync(saved);
  for (const [name, bytes] of Object.entries(await modelFiles(engine, model, given.modelFolder, 'base')))
    writeFileSync(join(saved, name), bytes);
  await expect(given.open({ adapterFolder: saved, trainsEncoder: false })).rejects.toThrow(
    'actor_rollout_ref.actor.freeze_vision_tower is true, but the adapter in',
  );
  const { engine: inspected } = await given.open({ adapterFolder: saved, trainsEncoder: undefined });
  expect((await seenBy(inspected, given)).actor).toEqual((await seenBy(engine, given)).actor);
});

it('leaves an encoder as it is if no adapter is on its layers', async () => {
  const given = await prepared('qwen2_5_vl', { lora: { ...lora, targets: ['q_proj', 'qkv'], exclude: '.*visual.*' } });
  const { engine } = await given.open();
  await update(engine, given.sample);
  expect((await engine.parameters()).every(({ name }) => isOfDecoder(name))).toBe(true);
});

it('trains adapters on layers of the encoder alone, with samples that show no picture', async () => {
  const targets = '.*visual.*(qkv|mlp\\..*)';
  const given = await prepared('qwen2_5_vl', { lora: { ...lora, targets } });
  const { engine } = await given.open();
  const { shows: _, ...text } = given.sample;
  const plain = { ...text, ids: Int32Array.from(text.ids, id => id % 700) };
  const loss = { ...goldenLoss, use_kl_loss: false };
  const before = await seenBy(engine, given);
  for (let step = 0; step < 2; step++)
    await engine.update([plain, given.sample], { maxTokens: Infinity, maxRows: 1 }, loss, optimizer, 1);
  expect((await engine.parameters()).every(({ name }) => !isOfDecoder(name))).toBe(true);
  const after = await seenBy(engine, given);
  expect(after.actor.logprobs).not.toEqual(before.actor.logprobs);
  expect(after.reference).toEqual(before.reference);
});
