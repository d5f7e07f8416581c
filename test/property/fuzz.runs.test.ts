// Feeds mutated inputs to every parser, as many as fit into a test run (test/torture/fuzz.ts runs a million), and
// checks that the fuzzer finds planted faults.
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { brokenTargets } from '../torture/fuzz-broken';
import { fuzzAll, inputsInCi } from '../torture/fuzz';
import { mostBytes, mutated, streamOf } from '../torture/fuzz-mutations';
import type { InputForm } from '../torture/fuzz-mutations';
import { targets } from '../torture/fuzz-targets';
import { FuzzWatch } from '../torture/fuzz-watch';
import { buildBundles, root } from '../support/bundles';

/** Folder with the files that the parsers load from beside their bundles. */
const installed = mkdtempSync(join(tmpdir(), 'ragen-fuzz-'));
let entry: string;
beforeAll(async () => {
  for (const name of ['envs', 'media']) symlinkSync(join(root, name), join(installed, name), 'junction');
  const sources = ['fuzz-process', 'fuzz-broken-process', 'fuzz-echo-process'].map(name => [
    name,
    `test/torture/${name}.ts`,
  ]);
  await buildBundles(Object.fromEntries(sources) as Record<string, string>, join(installed, 'dist'));
  entry = join(installed, 'dist', 'fuzz-process.cjs');
});
afterAll(() => rmSync(installed, { recursive: true, force: true }));

it(`${inputsInCi} mutated inputs are parsed or refused`, { timeout: 300_000 }, async () => {
  const all = await fuzzAll(inputsInCi, 1, entry, () => undefined);
  expect(all.map(({ name }) => name)).toEqual(targets.map(({ name }) => name));
  expect(all.reduce((sum, { inputs }) => sum + inputs, 0)).toBeGreaterThanOrEqual(inputsInCi);
  expect(all.flatMap(({ findings }) => findings)).toEqual([]);
});

it('valid inputs are no longer than the bound', () => {
  for (const { name, corpus } of targets)
    for (const entry of corpus) expect([name, Buffer.from(entry as string).length <= mostBytes]).toEqual([name, true]);
});

it('inputs are reproducible, differ from each other, and are no longer than the bound', () => {
  for (const form of ['bytes', 'text', 'json', 'lines', 'yaml'] satisfies InputForm[]) {
    const corpus = ['{"a": [1, "b"], "c": null}', '{"d": {"e": 1.5}}'].map(text => Buffer.from(text));
    const inputs = (): string[] =>
      Array.from({ length: 500 }, (_, i) => mutated(corpus, form, streamOf(7, 'x', i)).toString('latin1'));
    expect(inputs()).toEqual(inputs());
    expect(new Set(inputs()).size).toBeGreaterThan(300);
    expect(Math.max(...inputs().map(input => input.length))).toBeLessThanOrEqual(mostBytes);
    expect(inputs().some(input => input.includes('__proto__'))).toBe(true);
  }
});

it('a faulty parser is reported with its input, and the others continue', { timeout: 120_000 }, async () => {
  const watch = new FuzzWatch(join(dirname(entry), 'fuzz-broken-process.cjs'));
  try {
    const faults: Record<string, string[]> = {};
    for (const target of brokenTargets) {
      const { findings, inputs, broken } = await watch.fuzz(target, 1, 150);
      expect({ inputs, broken: broken > 0 }).toEqual({ inputs: 150, broken: target.name !== 'sound' });
      faults[target.name] = [...new Set(findings.map(({ fault }) => fault))];
      for (const { bytes } of findings) expect(Buffer.from(bytes, 'base64').toString('latin1')).toContain('!');
    }
    const one = (name: string) => [name, [name]] as const;
    const names = ['crash', 'hang', 'pollution', 'escape', 'wrong', 'death'];
    expect(faults).toEqual({ ...Object.fromEntries(names.map(one)), sound: [], 'stray rejection': ['crash'] });
  } finally {
    await watch.end();
  }
});
