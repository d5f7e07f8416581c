// LoRA adapters of vision-language models against peft on small random checkpoints (test/golden/make/vision_lora.py): the
// layers that are adapted and their names, log-probs, gradients through the policy loss and an AdamW step of factors of
// decoder, projection and encoder, written adapters, and merged models.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { loraModules, loraSpecs } from '../../../../extension/models/adapters/lora';
import type { LoraOptions } from '../../../../extension/models/adapters/lora';
import { adapterFiles, readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import type { Adapter, AdapterBase } from '../../../../extension/models/adapters/peft-adapter';
import { mapDecoder } from '../../../../extension/models/decoder/mapped-decoder';
import { adaptedEncoder, adaptedNetwork, frozenNetwork } from '../../../../extension/models/decoder/networks';
import { Policy } from '../../../../extension/models/policy';
import { mapEncoder } from '../../../../extension/models/vision/mapped-encoder';
import { PictureEncoder } from '../../../../extension/models/vision/picture-encoder';
import { transformersName } from '../../../../extension/models/vision/stored-names';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import { exportModel } from '../../../../extension/models/weights/export-model';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { Weights } from '../../../../extension/models/weights/weights';
import { tensorsOf } from '../../../golden/tensors';
import { goldenLoss, goldenOptimizer, relativeError } from '../../../support/small-models';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenVision, inputPlan } from '../../../support/vision-models';
import type { GoldenVision } from '../../../support/vision-models';

interface Choice {
  target_modules: LoraOptions['targets'];
  exclude_modules?: LoraOptions['exclude'];
  modules: string[];
}

const folder = temporaryFolder();
const shifted = (values: Float32Array): Float32Array => Float32Array.from([0, ...values]);
const options = { threads: 1 };
const budget = { maxRows: 3, maxTokens: Infinity };
const json = (file: string): Record<string, unknown> =>
  JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3'])('%s', family => {
  const [model, made] = [join('test/golden/vision', family), join('test/golden/vision-lora', family)];
  const golden = tensorsOf(join(made, 'golden.safetensors'));
  const of = (name: string): Float32Array => golden.get(name)!.data;
  let given: GoldenVision;
  let base: Required<AdapterBase>;
  let adapter: Adapter;
  beforeAll(async () => {
    given = await goldenVision(family);
    const { decoder, encoder } = given.model.config;
    base = { config: decoder, folder: model, encoder };
    adapter = await readAdapter(made, base);
  });
  const named = (name: string): string => transformersName(base.config, name);

  /** Writes an adapter to a new folder. */
  const write = (name: string, written: Adapter): string => {
    const to = join(folder(), name);
    mkdirSync(to);
    for (const [file, bytes] of Object.entries(adapterFiles(written, 'org/base', base)))
      writeFileSync(join(to, file), bytes);
    return to;
  };

  it('adapts the layers that peft adapts', () => {
    const choices = JSON.parse(readFileSync(join(made, 'modules.json'), 'utf8')) as Choice[];
    expect(choices).toHaveLength(5);
    for (const { target_modules: targets, exclude_modules: exclude, modules } of choices)
      expect(loraModules(base.config, targets, { exclude, encoder: base.encoder }).map(named).sort()).toEqual(modules);
  });

  it('adapts only layers of the decoder if the encoder is frozen', () => {
    const frozen = loraModules(base.config, 'all-linear').map(named);
    expect(frozen.every(name => /^model\.(language|text)_model\.layers\./.test(name))).toBe(true);
    expect(loraModules(base.config, 'all-linear', { encoder: base.encoder }).map(named)).toEqual(
      expect.arrayContaining(frozen),
    );
  });

  it("reads peft's adapter, also under the names of earlier versions of transformers", async () => {
    expect(adapter.lora).toEqual({ rank: 2, alpha: 3, dropout: 0, targets: 'all-linear' });
    expect(adapter.adaptsEncoder).toBe(true);
    const stored = tensorsOf(join(made, 'adapter_model.safetensors'));
    expect(adapter.factors.specs).toHaveLength(stored.size);
    for (const { name } of adapter.factors.specs)
      expect(adapter.factors.view(name)).toEqual(stored.get(`base_model.model.${named(name)}`)!.data);
    const earlier = join(folder(), 'earlier');
    cpSync(made, earlier, { recursive: true });
    const renamed = [...stored].map(([name, { dims, data }]) => ({
      name: name.replace('model.model.language_model', 'model.model').replace('model.model.visual', 'model.visual'),
      shape: dims,
      data,
    }));
    await writeSafetensors(join(earlier, 'adapter_model.safetensors'), renamed);
    expect((await readAdapter(earlier, base)).factors.flat).toEqual(adapter.factors.flat);
  });

  it('writes what peft writes', async () => {
    const written = write('written', adapter);
    const [ours, theirs] = [written, made].map(at => tensorsOf(join(at, 'adapter_model.safetensors')));
    expect([...ours.keys()].sort()).toEqual([...theirs.keys()].sort());
    for (const [name, { dims, data }] of theirs) expect(ours.get(name)).toEqual({ dims, data });
    const config = json(join(written, 'adapter_config.json'));
    const own = json(join(made, 'adapter_config.json'));
    for (const [key, value] of Object.entries(config))
      if (!['base_model_name_or_path', 'target_modules', 'task_type'].includes(key))
        expect({ [key]: value }).toEqual({ [key]: own[key] });
    // PEFT's list and ours choose the same layers.
    const chosen = (targets: unknown): string[] =>
      loraModules(base.config, targets as string[], { encoder: base.encoder });
    expect(chosen(config.target_modules)).toEqual(chosen(own.target_modules));
    expect((await readAdapter(written, base)).lora).toEqual(adapter.lora);
  });

  it.each([
    ['the decoder alone', 'all-linear', undefined, false],
    ['some layers of the decoder', ['q_proj', 'down_proj'], undefined, false],
    ['the encoder alone', '.*(visual|vision_model).*(qkv|attn\\.proj|q_proj)', undefined, true],
    ['both but the projection', 'all-linear', '.*(merger|connector).*', true],
  ] as const)('writes and reads adapters of %s', async (name, targets, exclude, seesEncoder) => {
    const encoder = seesEncoder ? base.encoder : undefined;
    const lora = { rank: 2, alpha: 4, dropout: 0, targets, exclude };
    const factors = new Weights(loraSpecs(base.config, lora, encoder));
    let next = 0;
    for (const { name: factor } of factors.specs) factors.view(factor).forEach((_, i, view) => (view[i] = next++));
    const written = write(name.replaceAll(' ', '-'), { lora, factors });
    const read = await readAdapter(written, base);
    expect(read.factors.flat).toEqual(factors.flat);
    expect(read.adaptsEncoder ?? false).toBe(seesEncoder);
    // The names in the configuration choose these layers in the complete model, too.
    const names = json(join(written, 'adapter_config.json')).target_modules as string[];
    expect(loraModules(base.config, names, { encoder: base.encoder })).toEqual(
      loraModules(base.config, targets, { exclude, encoder }),
    );
  });

  it("has peft's log-probs, gradients and AdamW step", async () => {
    const { samples, pictures } = given;
    const factors = new Weights(adapter.factors.specs, adapter.factors.flat.slice());
    const bank = new HostParameters(factors, options);
    const mapped = await mapDecoder(model);
    const { network } = await mapEncoder(model);
    const decoder = adaptedNetwork(frozenNetwork(base.config, mapped), adapter.lora, [], base.encoder);
    const policy = new Policy(decoder, bank, options);
    const encoder = new PictureEncoder(adaptedEncoder(network, base.config, adapter.lora), bank, options);
    const images = await encoder.features(pictures.flatMap(({ parts }) => parts));
    const { logprobs } = await policy.score(samples, budget, 0.7, undefined, { images });
    logprobs.forEach((found, row) =>
      expect(relativeError(found, shifted(of(`logprobs.${row}`))), `conversation ${row}`).toBeLessThan(1e-5),
    );
    // At the policy's own log-probs, the gradient of the policy loss is that of −Σ advantage · log-prob.
    const weighted = samples.map((sample, row) => ({
      ...sample,
      old_logprobs: shifted(of(`logprobs.${row}`)),
      ref_logprobs: new Float32Array(sample.ids.length),
      advantages: shifted(given.of(`weight.${row}`)).map(x => -x),
      weights: new Float32Array(sample.ids.length).fill(1),
    }));
    const loss = { ...goldenLoss, entropy_coeff: 0, use_kl_loss: false };
    const metrics = await policy.update(weighted, budget, loss, goldenOptimizer, 0, undefined, images);
    await encoder.release();
    expect(relativeError([metrics.grad_norm], of('norm'))).toBeLessThan(1e-4);
    const gradient = await bank.readGradient();
    const norm = (values: Float32Array): number => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
    for (const { name } of factors.specs) {
      const [found, expected] = [gradient.view(name), of(`grad.${named(name)}`)];
      // Relative to the gradient of all factors: those of the tile encoder's keys are small.
      expect(norm(found.map((x, i) => x - expected[i])) / metrics.grad_norm, name).toBeLessThan(1e-6);
      expect(relativeError(found, expected), name).toBeLessThan(1e-4);
      expect(relativeError(factors.view(name), of(`stepped.${named(name)}`)), name).toBeLessThan(1e-4);
    }
  });

  it('exports the merged model, whose log-probs are those of peft', async () => {
    const out = join(folder(), 'merged');
    const { mergedLayers } = await exportModel({
      ...{ model, adapter: made, out, format: 'safetensors', dtype: 'F32', maxShardBytes: 2 ** 30 },
    });
    expect(mergedLayers).toBe(adapter.factors.specs.length / 2);
    const merged = await readVisionModel(out);
    const { samples, pictures, encoder, network } = given;
    const eyes = new PictureEncoder(
      { ...encoder, plan: inputPlan(merged.encoder) },
      new HostParameters(merged.encoder, options),
      options,
    );
    const images = await eyes.features(pictures.flatMap(({ parts }) => parts));
    await eyes.release();
    const policy = new Policy(network, new HostParameters(merged.decoder, options), options);
    const { logprobs } = await policy.score(samples, budget, 0.7, undefined, { images });
    logprobs.forEach((found, row) =>
      expect(relativeError(found, shifted(of(`logprobs.${row}`))), `conversation ${row}`).toBeLessThan(1e-5),
    );
  });
});
