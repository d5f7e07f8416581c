// The self-check of a provider: every kind of difference has its message, and a provider that cannot run does not pass.
// Two CPU sessions agree; the tests inject faults into the CPU's own results.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LoadedModel, LoadOptions } from '../../../extension/engine/load-options';
import type { PictureUse } from '../../../extension/models/pictured-check';
import { PolicyEngine } from '../../../extension/models/policy-engine';
import { compared, computeShown, computeSmall, selfCheck, selfCheckApart } from '../../../extension/models/self-check';
import type { ComputedResults } from '../../../extension/models/self-check';
import { isOfDecoder } from '../../../extension/models/vision/stored-names';
import { Weights } from '../../../extension/models/weights/weights';
import { plainLoad } from '../../support/small-models';
import { temporaryFolder } from '../../support/temporary-folder';
import { makeVisionModel } from '../../support/vision-checkpoints';

const folder = temporaryFolder();
const expected = await computeSmall({ threads: 1 });

function faulty(change: (found: ComputedResults) => void): ComputedResults {
  const { loss, gradient, tokens } = expected;
  const found = {
    loss: { ...loss },
    gradient: new Weights(gradient.specs, gradient.flat.slice()),
    tokens: [...tokens],
  };
  change(found);
  return found;
}

describe('the self-check', () => {
  it('compares non-zero gradients of every parameter, and tokens of three rows', () => {
    for (const { name } of expected.gradient.specs) {
      const norm = Math.hypot(...expected.gradient.view(name));
      expect(norm, name).toBeGreaterThan(1e-4);
    }
    expect(new Set(expected.tokens).size).toBeGreaterThan(10);
    expect(Object.values(expected.loss).every(x => Number.isFinite(x) && x !== 0)).toBe(true);
  });

  it('finds no difference between equal results, and tolerates rounding', async () => {
    expect(compared(await computeSmall({ threads: 1 }), expected)).toEqual({ differs: null, gradient: 0 });
    const rounded = faulty(({ gradient: { flat } }) => flat.forEach((x, i) => (flat[i] = x * (1 + (i % 2) * 1e-5))));
    expect(compared(rounded, expected).differs).toBeNull();
  });

  it.each<[string, (found: ComputedResults) => void, RegExp]>([
    [
      'a loss',
      found => (found.loss.pg_loss *= 1.5),
      /^its pg_loss differs from the CPU's by 5\.0e-1 \(at most 1\.0e-2\)$/,
    ],
    ['a loss that is no number', found => (found.loss.entropy = NaN), /^its entropy differs from the CPU's by NaN/],
    [
      "one parameter's gradient",
      found =>
        found.gradient.view('model.layers.1.self_attn.k_norm.weight').forEach((x, i, view) => (view[i] = 1.4 * x)),
      /^its gradients differ from the CPU's by 4\.0e-1 \(at most 1\.0e-2; the largest difference is in model\.layers\.1\.self_attn\.k_norm\.weight\)$/,
    ],
    [
      'a gradient that is no number',
      found => (found.gradient.view('model.embed_tokens.weight')[7] = NaN),
      /^its gradients differ from the CPU's by NaN \(at most 1\.0e-2; the largest difference is in model\.embed_tokens\.weight\)$/,
    ],
    [
      'a token',
      found => (found.tokens[4] += 1),
      /^it samples different tokens than the CPU from the same random numbers \(from token 5 on\)$/,
    ],
  ])('detects a difference in %s', (_, change, sentence) => {
    expect(compared(faulty(change), expected).differs).toMatch(sentence);
  });

  it('fails on different results or a provider that cannot run', async () => {
    const off = faulty(({ loss }) => (loss.grad_norm *= 2));
    const wrong = await selfCheck('webgpu', 1, {
      compute: async ({ provider }) => (provider === 'cpu' ? expected : off),
    });
    expect(wrong).toEqual({
      passed: false,
      faster: false,
      about: "its grad_norm differs from the CPU's by 1.0e+0 (at most 1.0e-2)",
    });
    const broken = await selfCheck('webgpu', 1, {
      compute: async ({ provider }) => {
        if (provider === 'cpu') return expected;
        throw new Error(
          '/src/webgpu/context.cc:136 onnxruntime::Initialize()::<lambda()> status == Success was false. Failed to get a WebGPU adapter: No supported adapters\n',
        );
      },
    });
    expect(broken).toEqual({
      passed: false,
      faster: false,
      about: 'it does not run on this machine (Failed to get a WebGPU adapter: No supported adapters)',
    });
  });
});

describe('the self-check of a model that reads pictures', () => {
  const families = ['qwen2_5_vl', 'qwen3_vl', 'siglip'] as const;
  const use = (encoder: PictureUse['encoder'], trained = true): PictureUse => ({ encoder, trained, generates: false });

  it.each(families)('compares features, log-probs and gradients of decoder and encoder: %s', async encoder => {
    const [one, same] = [
      await computeShown(use(encoder), { threads: 1 }),
      await computeShown(use(encoder), { threads: 1 }),
    ];
    expect(compared(same, one)).toEqual({ differs: null, gradient: 0 });
    expect(one.gradient.specs.some(({ name }) => !isOfDecoder(name))).toBe(true);
    for (const { name } of one.gradient.specs) {
      // The bias of keys adds the same number to all scores of a query, so its gradient is zero.
      if (/k_proj\.bias$/.test(name) && !isOfDecoder(name)) continue;
      expect(Math.hypot(...one.gradient.view(name)), name).toBeGreaterThan(1e-5);
    }
    for (const values of Object.values(one.values!)) expect(values.every(Number.isFinite)).toBe(true);
    // A frozen encoder gives the same features and log-probs.
    const frozen = await computeShown(use(encoder, false), { threads: 1 });
    expect(frozen.values).toEqual(one.values);
    expect(frozen.gradient.specs.every(({ name }) => isOfDecoder(name))).toBe(true);
  });

  it.each([
    ['image features', /^its image features differ from the CPU's by 5\.0e-1 \(at most 1\.0e-2\)$/],
    ['log-probs of prompts with pictures', /^its log-probs of prompts with pictures differ from the CPU's by 5\.0e-1/],
  ])('detects a difference in %s', async (name, about) => {
    const checked = await selfCheck('webgpu', 1, {
      shown: use('qwen3_vl'),
      compute: async () => expected,
      computeShown: async (shown, { provider }) => {
        const found = await computeShown(shown, { threads: 1 });
        if (provider !== 'cpu') found.values![name].forEach((x, i, values) => (values[i] = 1.5 * x));
        return found;
      },
    });
    expect(checked).toEqual({ passed: false, faster: false, about: expect.stringMatching(about) as string });
  });

  it('fails where prompts with pictures cannot be answered, and says so', async () => {
    const refused = {
      passed: false,
      faster: false,
      about: 'it cannot answer prompts that show pictures, because it keeps keys and values on the device',
    };
    const shown = { ...use('qwen3_vl'), generates: true };
    expect(await selfCheck('webgpu', 1, { shown })).toEqual(refused);
    expect(await selfCheckApart('webgpu', 1, { shown, entry: 'dist/engine-worker.cjs' })).toEqual(refused);
  });

  it('is the check with which an engine loads such a model', async () => {
    const modelFolder = await makeVisionModel(folder(), 'qwen2_5_vl');
    const load = (options: Partial<LoadOptions>): Promise<LoadedModel> =>
      new PolicyEngine().load({ ...plainLoad, modelFolder, device: 'webgpu', ...options });
    await expect(load({ pictures: { folder: folder() } })).rejects.toThrow(
      /^workbench\.device is webgpu, but it cannot answer prompts that show pictures, because it keeps keys and values on the device: set workbench\.device=cpu$/,
    );
  });
});

describe('a check in a separate process', () => {
  it('returns the result of the process', async () => {
    // The bundle's own entry, with a provider that does not exist.
    const found = await selfCheckApart('nothing' as 'cpu', 1, { entry: 'dist/engine-worker.cjs' });
    expect(found).toMatchObject({ passed: false, faster: false });
    expect(found.about).toMatch(/^it does not run on this machine \(.*nothing.*\)$/);
  });

  it.each([
    ['SIGKILL', 'process.kill(process.pid, "SIGKILL")', 'it crashed the process that tested it (SIGKILL)'],
    ['an exit code', 'process.exit(3)', 'it crashed the process that tested it (code 3)'],
  ])('survives a process that ends with %s', async (_, code, about) => {
    const folder = mkdtempSync(join(tmpdir(), 'ragen-check-'));
    try {
      const entry = join(folder, 'entry.cjs');
      writeFileSync(entry, code);
      expect(await selfCheckApart('webgpu', 1, { entry })).toEqual({ passed: false, faster: false, about });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
