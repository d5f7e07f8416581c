// Properties of the run table's filter, order and columns, for arbitrary texts and values.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseRunFilter, passesFilter } from '../../../extension/run-data/run-filter';
import {
  compareCells,
  formatSortKey,
  groupRows,
  nextSort,
  parseSortKey,
  sortRows,
} from '../../../extension/run-data/run-order';
import {
  columnId,
  columnResolver,
  parseColumn,
  tableFields,
  type RunColumn,
} from '../../../extension/run-data/table-columns';

const resolve = columnResolver(['optim.lr'], ['actor/entropy']);
const cell = fc.oneof(fc.double({ noNaN: true }), fc.string(), fc.constant(null));
const key = fc.string({ minLength: 1 });
const columns: fc.Arbitrary<RunColumn> = fc.oneof(
  fc.constantFrom(...tableFields).map(field => ({ kind: 'field' as const, field })),
  key.map(each => ({ kind: 'config' as const, key: each })),
  fc
    .tuple(key, fc.oneof(fc.constantFrom('last' as const, 'best' as const), fc.nat({ max: 999_999_999 })))
    .map(([each, at]) => ({ kind: 'metric' as const, key: each, at })),
);

it('a column is found by its identifier', () => {
  fc.assert(
    fc.property(columns, column => {
      expect(parseColumn(columnId(column))).toEqual(column);
    }),
  );
});

it('a sort key is found by its text', () => {
  const keys = fc.record({ by: columns.map(columnId), down: fc.boolean() });
  fc.assert(
    fc.property(keys, each => {
      expect(parseSortKey(formatSortKey(each))).toEqual(each);
    }),
  );
});

it('clicks on one column return to the first order after three', () => {
  fc.assert(
    fc.property(fc.uniqueArray(columns.map(columnId)), columns.map(columnId), fc.boolean(), (others, by, add) => {
      const before = others.filter(id => id !== by);
      const after = nextSort(nextSort(nextSort(before, by, add), by, add), by, add);
      expect(after).toEqual(add ? before : []);
    }),
  );
});

it('any text is a filter: every piece is a term, a problem, or incomplete', () => {
  const word = fc.constantFrom(
    'lr',
    'state',
    'entropy',
    'name',
    'x',
    '-',
    '"',
    ':',
    '<',
    '>=',
    '..',
    '0.5',
    ' ',
    '%',
    '=',
  );
  const line = fc.oneof(
    fc.string(),
    fc.array(word).map(words => words.join('')),
  );
  fc.assert(
    fc.property(line, cell, (text, value) => {
      const { terms } = parseRunFilter(text, resolve);
      expect(typeof passesFilter(terms, 'a run', () => value)).toBe('boolean');
    }),
  );
});

it('terms are combined with “and”, and a minus sign negates a term', () => {
  const term = fc.oneof(
    fc
      .tuple(fc.constantFrom('lr', 'state', 'entropy'), fc.constantFrom(':', '=', '<', '<=', '>', '>='), fc.integer())
      .map(parts => parts.join('')),
    fc.constantFrom('run', 'lake', 'state:a', 'lr:1..5', 'lr:..3'),
  );
  fc.assert(
    fc.property(fc.array(term), term, cell, (lines, one, value) => {
      const holds = (line: string) => passesFilter(parseRunFilter(line, resolve).terms, 'a run', () => value);
      expect(holds(lines.join(' '))).toBe(lines.every(holds));
      expect(holds(`-${one}`)).toBe(!holds(one));
    }),
  );
});

it('the order is total: antisymmetric and transitive', () => {
  fc.assert(
    fc.property(cell, cell, cell, (a, b, c) => {
      expect(Math.sign(compareCells(a, b)) + Math.sign(compareCells(b, a))).toBe(0);
      if (compareCells(a, b) <= 0 && compareCells(b, c) <= 0) expect(compareCells(a, c)).toBeLessThanOrEqual(0);
    }),
  );
});

it('sorting is stable, keeps all rows, and puts missing values last; groups keep all rows', () => {
  const table = fc.array(fc.record({ a: cell, b: cell }));
  fc.assert(
    fc.property(table, fc.constantFrom(['a'], ['-a'], ['a', '-b']), (rows, sort) => {
      const sorted = sortRows(rows, sort, (row, id) => row[id as 'a' | 'b']);
      expect([...sorted].sort((x, y) => rows.indexOf(x) - rows.indexOf(y))).toEqual(rows);
      const missing = sorted.findIndex(({ a }) => a === null);
      if (missing >= 0) expect(sorted.slice(missing).every(({ a }) => a === null)).toBe(true);
      for (const [i, row] of sorted.slice(1).entries())
        if (compareCells(row.a, sorted[i].a) === 0 && sort.length === 1)
          expect(rows.indexOf(row)).toBeGreaterThan(rows.indexOf(sorted[i]));
      expect(groupRows(rows, ({ a }) => a).flatMap(group => group.rows)).toHaveLength(rows.length);
    }),
  );
});
