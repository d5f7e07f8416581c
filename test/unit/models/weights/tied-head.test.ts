// tie_word_embeddings with a stored head, as in transformers 5 (PreTrainedModel.tie_weights): a head that differs from
// the embedding is kept, an equal one is tied, and a head stored alone is the embedding too. All results equal the same
// weights under a configuration that declares their actual tie.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LoadOptions } from '../../../../extension/engine/load-options';
import { exportModel } from '../../../../extension/models/weights/export-model';
import { modelFiles } from '../../../../extension/models/weights/model-files';
import { openDecoder, readDecoder } from '../../../../extension/models/weights/model-folder';
import { mapDecoder } from '../../../../extension/models/decoder/mapped-decoder';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { quantizedNetwork } from '../../../../extension/models/weights/quantized-base';
import { planInput } from '../../../../extension/trainer/plan/memory-input';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { tensorsOf } from '../../../golden/tensors';
import { temporaryFolder } from '../../../support/temporary-folder';
import {
  goldenFolder,
  goldenLoss,
  goldenOptimizer,
  goldenSamples,
  plainLoad,
  wholeBatch,
} from '../../../support/small-models';

const folder = temporaryFolder();
const path = (...names: string[]): string => join(folder(), ...names);
const [embedding, head] = ['model.embed_tokens.weight', 'lm_head.weight'];
type Tensors = ReturnType<typeof tensorsOf>;

/** A copy of a golden checkpoint with other tensors, declared tied or not. */
async function model(
  name: string,
  family: string,
  tied: boolean,
  change: (tensors: Tensors) => void = () => undefined,
): Promise<string> {
  mkdirSync(path(name));
  cpSync(join(goldenFolder(family), 'generation_config.json'), path(name, 'generation_config.json'));
  const config = readFileSync(join(goldenFolder(family), 'config.json'), 'utf8');
  writeFileSync(path(name, 'config.json'), config.replace(/("tie_word_embeddings": )\w+/, `$1${tied}`));
  const tensors = tensorsOf(join(goldenFolder(family), 'model.safetensors'));
  change(tensors);
  const list = [...tensors].map(([name, { dims, data }]) => ({ name, shape: dims, data }));
  await writeSafetensors(path(name, 'model.safetensors'), list);
  return path(name);
}

/** Results of scoring, an optimizer step and scoring again, with those of the reference and the critic. */
async function computed(modelFolder: string, options: Partial<LoadOptions>): Promise<unknown> {
  const engine = new PolicyEngine();
  const load = { ...plainLoad, cacheFolder: path('cache'), critic: true, ...options };
  const loaded = await engine.load({ ...load, modelFolder, referenceFolder: modelFolder });
  const samples = goldenSamples('llama');
  const score = async (which: 'actor' | 'reference') => (await engine.score(which, samples, wholeBatch, 1)).logprobs;
  const before = [await score('actor'), await score('reference')];
  await engine.update(samples, wholeBatch, goldenLoss, goldenOptimizer, 0);
  const after = await score('actor');
  const values = await engine.values(samples, wholeBatch);
  return { loaded, before, after, values };
}

const ways: [string, Partial<LoadOptions>][] = [
  ['all weights trained', {}],
  ['adapters', { lora: { rank: 2, alpha: 4, dropout: 0, targets: 'all-linear' } }],
  [
    'adapters over 8 bits',
    {
      lora: { rank: 2, alpha: 4, dropout: 0, targets: 'all-linear' },
      baseQuantization: 'int8',
      rolloutQuantization: 'int8',
    },
  ],
];

describe.each(ways)('with %s', (_, options) => {
  it('a head that differs from the embedding is used even if a tie is declared', async () => {
    const [declared, plain] = [await model('tied', 'llama', true), await model('untied', 'llama', false)];
    expect(await computed(declared, options)).toEqual(await computed(plain, options));
  });
});

it('a head that equals the embedding is tied', async () => {
  const tied = await model('both', 'qwen2', true, tensors => tensors.set(head, tensors.get(embedding)!));
  const { config, weights } = await readDecoder(tied);
  expect(config.tiedHead).toBe(true);
  expect(weights.flat).toEqual((await readDecoder(goldenFolder('qwen2'))).weights.flat);
});

it('a head that differs only in its last element is not tied', async () => {
  const changed = await model('last', 'qwen2', true, tensors => {
    const { dims, data } = tensors.get(embedding)!;
    const other = data.slice();
    other[other.length - 1] += 1e-3;
    tensors.set(head, { dims, data: other });
  });
  const { config, weights } = await readDecoder(changed);
  expect(config.tiedHead).toBe(false);
  expect(weights.view(head).at(-1)).not.toBe(weights.view(embedding).at(-1));
});

it('a head of another shape is refused', async () => {
  const other = await model('shape', 'qwen2', true, tensors =>
    tensors.set(head, { dims: [2, 24], data: new Float32Array(48) }),
  );
  await expect(readDecoder(other)).rejects.toThrow(
    /the tensor lm_head\.weight has the shape \[2, 24\], but config\.json requires \[61, 24\]: use weights and config\.json of the same model/,
  );
});

it('a head stored alone is the embedding too, read and mapped', async () => {
  const alone = await model('alone', 'qwen2', true, tensors => {
    tensors.set(head, tensors.get(embedding)!);
    tensors.delete(embedding);
  });
  const expected = await readDecoder(goldenFolder('qwen2'));
  const { config, weights } = await readDecoder(alone);
  expect(config).toEqual(expected.config);
  expect(weights.flat).toEqual(expected.weights.flat);
  const { tensors } = await mapDecoder(alone);
  expect(tensors.get(embedding)!.bytes).toBe(4 * 61 * 24);
  await exportModel({ model: alone, format: 'safetensors', out: path('out'), maxShardBytes: 1e9 });
  expect((await readDecoder(path('out'))).weights.flat).toEqual(expected.weights.flat);
});

it('without a declared tie an equal head stays a separate tensor', async () => {
  const both = await model('both', 'qwen2', false, tensors => tensors.set(head, tensors.get(embedding)!));
  expect((await readDecoder(both)).config.tiedHead).toBe(false);
});

it('an export keeps the head, and declares no tie to readers that would apply it', async () => {
  const declared = await model('tied', 'llama', true);
  for (const format of ['safetensors', 'onnx'] as const)
    await exportModel({ model: declared, format, out: path(format), maxShardBytes: 1e9 });
  const own = readFileSync(join(goldenFolder('llama'), 'config.json'), 'utf8');
  expect(readFileSync(path('safetensors', 'config.json'), 'utf8')).toBe(own);
  const expected = (await readDecoder(goldenFolder('llama'))).weights.flat;
  expect((await readDecoder(path('safetensors'))).weights.flat).toEqual(expected);
  expect((await readDecoder(path('onnx'))).weights.flat).toEqual(expected);
});

it('a checkpoint keeps the head, and declares no tie', async () => {
  const declared = await model('tied', 'llama', true);
  const engine = new PolicyEngine();
  const loaded = await engine.load({ ...plainLoad, modelFolder: declared });
  mkdirSync(path('checkpoint'));
  for (const [name, content] of Object.entries(await modelFiles(engine, loaded, declared, declared)))
    writeFileSync(path('checkpoint', name), content);
  expect(JSON.parse(readFileSync(path('checkpoint', 'config.json'), 'utf8'))).toMatchObject({
    tie_word_embeddings: false,
  });
  expect((await readDecoder(path('checkpoint'))).weights.flat).toEqual((await readDecoder(declared)).weights.flat);
});

it('a checkpoint written without the head is loaded beside a reference that has one', async () => {
  const declared = await model('tied', 'llama', true);
  const earlier = await model('earlier', 'llama', true, tensors => tensors.delete(head));
  const engine = new PolicyEngine();
  await engine.load({ ...plainLoad, modelFolder: earlier, referenceFolder: declared });
  const samples = goldenSamples('llama');
  const own = (await engine.score('actor', samples, wholeBatch, 1)).logprobs;
  const reference = (await engine.score('reference', samples, wholeBatch, 1)).logprobs;
  expect(reference[0][3]).not.toBeCloseTo(own[0][3], 3);
});

it('an 8-bit base made from the embedding is not used for the head', async () => {
  const declared = await model('tied', 'llama', true);
  const base = await mapDecoder(declared);
  const earlier = await quantizedNetwork({ ...base, config: { ...base.config, tiedHead: true } }, path('cache'));
  expect((await quantizedNetwork(base, path('cache'))).folder).not.toBe(earlier.folder);
});

it('the memory plan matches the loaded model', async () => {
  const declared = await model('tied', 'llama', true);
  const overrides = ['actor_rollout_ref.rollout.max_model_len=48', 'actor_rollout_ref.rollout.response_length=8'];
  const { config } = loadConfig({
    configName: 'base',
    overrides,
    presetFolders: ['media/presets'],
    workspace: folder(),
  });
  const { decoder } = await planInput(config, declared, folder());
  const { config: opened, files } = await openDecoder(declared);
  await files.close();
  expect(decoder).toEqual(opened);
  expect(decoder.tiedHead).toBe(false);
});
