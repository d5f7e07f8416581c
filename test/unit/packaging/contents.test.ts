// What of the repository is packaged: `.vscodeignore` excludes everything and then admits what the extension loads.
// What is meant for contributors stays outside.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';

const patterns = readFileSync('.vscodeignore', 'utf8')
  .split('\n')
  .filter(line => line !== '' && !line.startsWith('#'));
const admitted = patterns.slice(1).map(pattern => pattern.slice(1));

test('everything is excluded first, and what follows only admits', () => {
  expect(patterns[0]).toBe('**');
  expect(patterns.slice(1).filter(pattern => !pattern.startsWith('!'))).toEqual([]);
});

test('nothing for contributors is admitted', () => {
  const tops = new Set(admitted.map(pattern => pattern.split('/')[0]));
  expect([...tops].filter(top => !existsSync(top))).toEqual([]);
  const outside = readdirSync('.').filter(name => !tops.has(name));
  expect(outside).toEqual(
    expect.arrayContaining(['.ci', '.devcontainer', '.github', '.vscode', 'CONTRIBUTING.md', 'examples', 'test']),
  );
  expect(admitted.filter(pattern => pattern.startsWith('docs'))).toEqual(['docs/METRICS.md']);
});
