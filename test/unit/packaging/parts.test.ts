// The parts into which the long tests are divided (test/parts.mjs) name existing files, each once.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { leftOut, parts } from '../../parts.mjs';
import { root } from '../../support/workspace';

afterEach(() => vi.unstubAllEnvs());

test('the parts name existing tests, each once', () => {
  const files = parts.flatMap(({ tests, specs }) => [
    ...tests,
    ...specs.map(name => `test/e2e/specs/${name}.spec.mjs`),
  ]);
  expect(files.filter(file => !existsSync(join(root, file)))).toEqual([]);
  expect(new Set(files).size).toBe(files.length);
});

test('a part leaves out the tests of all other parts; no part leaves out nothing', () => {
  vi.stubEnv('RAGEN_PART', '2');
  expect(leftOut('tests')).toEqual([...parts.slice(0, 2), ...parts.slice(3)].flatMap(({ tests }) => tests));
  vi.stubEnv('RAGEN_PART', 'all');
  expect(leftOut('specs')).toEqual([]);
  vi.stubEnv('RAGEN_PART', '10');
  expect(() => leftOut('specs')).toThrow('RAGEN_PART is 10: set it to a number from 0 to 9, or to all');
});
