// The self-check of a provider: every kind of difference has its message, and a provider that cannot run does not pass.
// Two CPU sessions agree; the tests inject faults into the CPU's own results.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compared, computeSmall, selfCheck, selfCheckApart } from '../../../extension/models/self-check';
import type { ComputedResults } from '../../../extension/models/self-check';
import { Weights } from '../../../extension/models/weights/weights';

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
    const wrong = await selfCheck('webgpu', 1, 'float32', async ({ provider }) =>
      provider === 'cpu' ? expected : off,
    );
    expect(wrong).toEqual({
      passed: false,
      faster: false,
      about: "its grad_norm differs from the CPU's by 1.0e+0 (at most 1.0e-2)",
    });
    const broken = await selfCheck('webgpu', 1, 'float32', async ({ provider }) => {
      if (provider === 'cpu') return expected;
      throw new Error(
        '/src/webgpu/context.cc:136 onnxruntime::Initialize()::<lambda()> status == Success was false. Failed to get a WebGPU adapter: No supported adapters\n',
      );
    });
    expect(broken).toEqual({
      passed: false,
      faster: false,
      about: 'it does not run on this machine (Failed to get a WebGPU adapter: No supported adapters)',
    });
  });
});

describe('a check in a separate process', () => {
  it('returns the result of the process', async () => {
    // The bundle's own entry, with a provider that does not exist.
    const found = await selfCheckApart('nothing' as 'cpu', 1, 'dist/engine-worker.cjs');
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
      expect(await selfCheckApart('webgpu', 1, entry)).toEqual({ passed: false, faster: false, about });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
