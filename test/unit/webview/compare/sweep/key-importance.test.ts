// The importance of a sweep's keys against SciPy and scikit-learn, and its properties.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rankCorrelation } from '../../../../../extension/common/rank-correlation';
import { keyColumn, keyImportances, leastRuns } from '../../../../../webview/compare/sweep/key-importance';

interface Golden {
  columns: Record<string, number[]>;
  results: number[];
  spearman: number[];
  importances: number[];
  explained: number;
}
// Written by test/golden/make/sweep_importance.py.
const golden = JSON.parse(readFileSync('test/golden/sweep-importance.json', 'utf8')) as Record<string, Golden>;
const texts = (values: readonly (number | string)[]) => values.map(String);

describe('the column of a key', () => {
  it('has numbers, or the positions of its values, numbers first', () => {
    expect(keyColumn('k', ['0.001', '3e-4'])).toEqual({ key: 'k', values: [0.001, 0.0003], names: null });
    expect(keyColumn('k', ['b', '10', 'a', '9', 'b']).names).toEqual(['9', '10', 'a', 'b']);
    expect(keyColumn('k', ['b', '10', 'a', '9', 'b']).values).toEqual([3, 1, 2, 0, 3]);
    expect(keyColumn('k', ['1', '']).names).toEqual(['1', '']);
  });
});

describe.each(Object.entries(golden))('the %s sweep', (_, { columns, results, spearman, importances, explained }) => {
  const list = Object.entries(columns).map(([key, values]) => keyColumn(key, texts(values)));
  const found = keyImportances(list, results)!;

  it('has SciPy’s rank correlations', () => {
    found.keys.forEach(({ correlation }, i) => expect(correlation).toBeCloseTo(spearman[i], 10));
  });

  it('has scikit-learn’s permutation importances, up to the randomness of 100 trees', () => {
    found.keys.forEach(({ importance }, i) =>
      expect(Math.abs(importance - importances[i])).toBeLessThan(0.03 + 0.15 * importances[i]),
    );
    expect(found.explained).toBeCloseTo(explained, 1);
  });

  it('is the same every time, and in every order of the keys', () => {
    expect(keyImportances(list, results)).toEqual(found);
    const reversed = keyImportances([...list].reverse(), results)!;
    const ranking = ({ keys }: typeof found) => [...keys].sort((a, b) => b.importance - a.importance)[0].key;
    expect(ranking(reversed)).toBe(ranking(found));
  });
});

describe('importances', () => {
  const runs = 20;
  const lr = Array.from({ length: runs }, (_, i) => [0.1, 0.2, 0.4, 0.8][i % 4]);
  const results = lr.map((value, i) => value + (i % 3) * 0.001);

  it('are shared by keys that always change together, whose names are listed', () => {
    const columns = [
      keyColumn('lr', texts(lr)),
      keyColumn('warmup', texts(lr.map(value => 1 - value))),
      keyColumn('other', texts(lr.map((_, i) => i % 5))),
    ];
    const { keys } = keyImportances(columns, results)!;
    expect(keys[0].importance).toBe(keys[1].importance);
    expect(keys.map(({ together }) => together)).toEqual([['warmup'], ['lr'], []]);
    expect(keys[0].importance).toBeGreaterThan(1);
    expect(keys[2].importance).toBeLessThan(0.05);
    expect(keys.map(({ correlation }) => Math.sign(correlation!)).slice(0, 2)).toEqual([1, -1]);
  });

  it('need enough runs and different results', () => {
    const column = keyColumn('lr', texts(lr.slice(0, leastRuns - 1)));
    expect(keyImportances([column], results.slice(0, leastRuns - 1))).toBeNull();
    expect(
      keyImportances(
        [keyColumn('lr', texts(lr))],
        lr.map(() => 0.5),
      ),
    ).toBeNull();
  });

  it('have a correlation for two names, but not for three', () => {
    const of = (names: string[]) =>
      keyColumn(
        'k',
        lr.map((_, i) => names[i % names.length]),
      );
    const { keys } = keyImportances([of(['off', 'on']), of(['a', 'b', 'c'])], results)!;
    expect(keys[0].correlation).not.toBeNull();
    expect(keys[1].correlation).toBeNull();
  });

  it('are never negative, and say when noise explains nothing', () => {
    const numbers = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 12, maxLength: 12 });
    fc.assert(
      fc.property(numbers, numbers, numbers, (a, b, y) => {
        const found = keyImportances([keyColumn('a', texts(a)), keyColumn('b', texts(b))], y);
        if (!found) return;
        expect(found.explained).toBeLessThanOrEqual(1);
        for (const { importance } of found.keys) expect(importance).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 30 },
    );
  });
});

describe('rank correlation', () => {
  it('lies within −1 and 1, changes sign with a key and not with its scale', () => {
    const value = fc.integer({ min: -50, max: 50 });
    fc.assert(
      fc.property(fc.array(fc.tuple(value, value), { minLength: 2 }), pairs => {
        const [a, b] = [pairs.map(([x]) => x), pairs.map(([, y]) => y)];
        const found = rankCorrelation(a, b);
        expect(Math.abs(found)).toBeLessThanOrEqual(1);
        expect(
          rankCorrelation(
            a.map(x => x ** 3),
            b,
          ),
        ).toBeCloseTo(found, 9);
        expect(
          rankCorrelation(
            a.map(x => -x),
            b,
          ),
        ).toBeCloseTo(-found, 9);
        expect(rankCorrelation(b, a)).toBeCloseTo(found, 9);
      }),
    );
    expect(rankCorrelation([1, 1, 1], [1, 2, 3])).toBe(0);
  });
});
