// For any input, loading a configuration returns a valid configuration or throws a ConfigError.
import fc from 'fast-check';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { ConfigError } from '../../../../extension/trainer/config/config-error';
import { canonicalJson } from '../../../../extension/trainer/config/config-hash';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { runConfigSchema } from '../../../../extension/trainer/config/schema';

const presetFolder = join(import.meta.dirname, '../../../../media/presets');
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const base = loadConfig({ configName: 'base', overrides: [], presetFolders: [presetFolder], workspace: '/' }).config;
const keysOf = (value: unknown, prefix = ''): string[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([key, child]) => [prefix + key, ...keysOf(child, `${prefix}${key}.`)])
    : [];
const keys = keysOf(base);

/** Loads a configuration; asserts that the result is valid or a ConfigError with complete sentences. */
function outcome(yaml: string, overrides: string[]): void {
  const configFile = join(folder, 'run.yaml');
  writeFileSync(configFile, yaml);
  try {
    const { config } = loadConfig({ configFile, overrides, presetFolders: [presetFolder], workspace: folder });
    expect(runConfigSchema.parse(config)).toEqual(config);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.problems.length).toBeGreaterThan(0);
    for (const { message } of error.problems) expect(message).toMatch(/^config: .*: /s);
  }
}

const word = fc.oneof(
  fc.constantFrom(...keys),
  fc.string({ maxLength: 12 }),
  fc.constantFrom('__proto__', 'constructor', 'defaults', 'a.b'),
);
const scalar = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.string(),
  fc.constantFrom(...keys).map(key => `\${${key}}`),
  fc.constantFrom('true', '1e-6', '[1,2]', '{a:1}', '||', '"', '${', '${}', '${a..b}', '&a', '*a', '!!binary x', '- x'),
);

test('any overrides load or raise a ConfigError', () => {
  const sign = fc.constantFrom('', '', '', '+', '++', '~');
  const override = fc.oneof(
    fc.tuple(sign, word, scalar).map(([s, key, value]) => `${s}${key}=${String(value)}`),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(override, { maxLength: 5 }), overrides => outcome('defaults: [base]', overrides)),
    { numRuns: 80 },
  );
});

test('any value at any key loads or raises a ConfigError', () => {
  const tree = fc.letrec(tie => ({
    node: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('node'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys.flatMap(key => key.split('.'))), tie('node'), { maxKeys: 4 }),
    ),
  })).node;
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...Object.keys(base), 'x', 'hydra'), tree, { maxKeys: 4 }), value =>
      outcome(stringify({ defaults: ['base'], ...value }), []),
    ),
    { numRuns: 80 },
  );
});

test('malformed YAML raises a ConfigError', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '\n',
      '  ',
      ': ',
      '- ',
      '[',
      ']',
      '{',
      '}',
      '&a ',
      '*a',
      '<<: ',
      '# ',
      '"',
      "'",
      '|',
      '>',
      '---\n',
      '...',
      '\t',
      '%YAML 1.1\n',
      'seed',
      'defaults',
    ),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), pieces => outcome(pieces.join(''), [])),
    { numRuns: 200 },
  );
});

test('canonical JSON does not depend on key order and parses back to the same configuration', () => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      const text = canonicalJson(value);
      expect(canonicalJson(reversed(value))).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

const reversed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, child]) => [key, reversed(child)]),
  );
};
