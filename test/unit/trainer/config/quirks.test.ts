// docs/QUIRKS.md: every row has a decision, and the tests named there exist. Also tests the quirks of configurations.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { load, repository } from './presets';

const text = readFileSync(join(repository, 'docs/QUIRKS.md'), 'utf8');
const rows = text
  .split('\n')
  .filter(line => /^\|(?! *(?:no\.|in RAGEN|---))/.test(line))
  .map(line =>
    line
      .slice(1, -1)
      .split('|')
      .map(cell => cell.trim()),
  );
const numbered = rows.filter(([first]) => /^\d+$/.test(first));

describe('docs/QUIRKS.md', () => {
  test('lists each of the 32 known quirks once', () => {
    expect(numbered.map(([number]) => Number(number))).toEqual(Array.from({ length: 32 }, (_, i) => i + 1));
  });

  test('has a decision and an explanation for each', () => {
    for (const cells of rows) {
      const [quirk, decision, how, tests] = cells.slice(-4);
      expect(decision, quirk).toMatch(/^(kept|fixed|switchable|not here)$/);
      for (const sentence of [quirk, how]) expect(sentence).toMatch(/\.$/);
      const paths = [...tests.matchAll(/`([^`]+)`/g)].map(([, path]) => path);
      if (decision !== 'not here') expect(paths, quirk).not.toEqual([]);
      expect(paths.filter(path => !existsSync(join(repository, 'test', path)))).toEqual([]);
    }
  });
});

describe('instructions of tags', () => {
  const { custom_envs } = load('base').config;

  test.each([
    ['CoordFrozenLake', 4],
    ['CoordSokoban', 6],
  ])('%s names the corner of its board', (tag, size) => {
    const corners = [...custom_envs[tag].env_instruction!.matchAll(/\((\d+), (\d+)\) at the bottom right/g)];
    expect(corners.map(([, row, column]) => [Number(row), Number(column)])).toEqual([[size - 1, size - 1]]);
  });
});
