// Columns, filter, order, groups and CSV of the run table.
import { describe, expect, it } from 'vitest';
import { configLeaves } from '../../../extension/run-data/config-leaves';
import { csvLine } from '../../../extension/run-data/csv';
import { filteredColumns, parseRunFilter, passesFilter } from '../../../extension/run-data/run-filter';
import { compareCells, groupRows, nextSort, sortRows } from '../../../extension/run-data/run-order';
import { bestOf, columnResolver, parseColumn, type Cell } from '../../../extension/run-data/table-columns';

const resolve = columnResolver(
  ['actor_rollout_ref.actor.optim.lr', 'critic.optim.lr', 'algorithm.adv_estimator'],
  ['val-env/lake/success', 'train/lake/success', 'actor/entropy'],
);

describe('columns', () => {
  it('are identified by texts', () => {
    expect(parseColumn('name')).toEqual({ kind: 'field', field: 'name' });
    expect(parseColumn('config(algorithm.adv_estimator)')).toEqual({ kind: 'config', key: 'algorithm.adv_estimator' });
    expect(parseColumn('best(val-env/lake/pass@8)')).toEqual({
      kind: 'metric',
      key: 'val-env/lake/pass@8',
      at: 'best',
    });
    expect(parseColumn('at(40,actor/entropy)')).toEqual({ kind: 'metric', key: 'actor/entropy', at: 40 });
    for (const wrong of ['', 'Name', 'last()', 'at(-1,a)', 'at(x,a)', 'first(a)'])
      expect(parseColumn(wrong)).toBeNull();
  });

  it('are found by complete keys and by last parts that are unique', () => {
    expect(resolve('state')).toBe('state');
    expect(resolve('adv_estimator')).toBe('config(algorithm.adv_estimator)');
    expect(resolve('critic.optim.lr')).toBe('config(critic.optim.lr)');
    expect(resolve('entropy')).toBe('last(actor/entropy)');
    expect(resolve('train/lake/success')).toBe('last(train/lake/success)');
    expect(resolve('success')).toBe('success'); // the field
    expect([resolve('lr'), resolve('unknown')]).toEqual([null, null]); // two keys; none
  });

  it('have their highest value as best, except losses, divergences and durations', () => {
    expect(['val-env/lake/success', 'critic/score/mean', 'actor/entropy'].map(bestOf)).toEqual(
      Array(3).fill('highest'),
    );
    expect(['timing_s/gen', 'perf/time_per_step', 'train/env_error_rate'].map(bestOf)).toEqual(Array(3).fill('lowest'));
  });
});

describe('the filter', () => {
  const cells: Record<string, Cell> = {
    state: 'finished',
    progress: 40,
    success: 0.5,
    tags: 'paper, best',
    'config(algorithm.adv_estimator)': 'grpo',
    'best(val-env/lake/success)': 0.8,
    'last(actor/entropy)': null,
  };
  const passes = (line: string) => {
    const { terms, problems } = parseRunFilter(line, resolve);
    expect(problems, line).toEqual([]);
    return passesFilter(terms, 'Lake one\n#paper', id => cells[id] ?? null);
  };

  it('finds words, parts of texts, equal values, ranges and comparisons', () => {
    const holding = [
      'lake',
      '"lake one"',
      '#PAPER',
      'tag:paper',
      'state=Finished',
      'adv_estimator:gr',
      'progress:40',
      'progress:..40',
      'progress:40..',
      'success>=0.5',
      'success>=50%',
      'best(val-env/lake/success)>0.7',
      '-entropy>0',
      '-state:failed lake',
      '-',
      'state:',
    ];
    for (const line of holding) expect(passes(line), line).toBe(true);
    const failing = ['river', '-lake', 'state=finish', 'progress:41..', 'success>0.5', 'entropy>0', 'tag:pa -tag:best'];
    for (const line of failing) expect(passes(line), line).toBe(false);
  });

  it('names what it cannot interpret, and keeps the other terms', () => {
    const { terms, problems } = parseRunFilter('lr>1 stat:x success>high lake', resolve);
    expect(terms).toHaveLength(1);
    expect(problems).toEqual([
      '“lr” is not the name of exactly one column: write the complete key of a metric or setting',
      '“stat” is not the name of exactly one column: did you mean “state”?',
      '“success>high” needs a number: write success>0.5, or success:high to find a text',
    ]);
  });

  it('lists the columns that it needs', () => {
    expect(filteredColumns(parseRunFilter('a state:x entropy>1 entropy<2', resolve))).toEqual([
      'state',
      'last(actor/entropy)',
    ]);
  });
});

describe('the order', () => {
  const rows: Record<string, Cell>[] = [
    { a: 1, b: 'lr10' },
    { a: null, b: 'lr2' },
    { a: 1, b: 'lr2' },
    { a: 3, b: null },
  ];
  const sorted = (...sort: string[]) => sortRows(rows, sort, (row, id) => row[id]).map(row => rows.indexOf(row));

  it('sorts by several columns, naturally, missing values last', () => {
    expect(sorted()).toEqual([0, 1, 2, 3]);
    expect(sorted('a')).toEqual([0, 2, 3, 1]);
    expect(sorted('-a')).toEqual([3, 0, 2, 1]);
    expect(sorted('a', 'b')).toEqual([2, 0, 3, 1]);
    expect(sorted('-b')).toEqual([0, 1, 2, 3]);
    expect(compareCells(2, 'a')).toBeLessThan(0);
  });

  it('changes from high to low, to low to high, to none', () => {
    expect(nextSort([], 'a', false)).toEqual(['-a']);
    expect(nextSort(['-a'], 'a', false)).toEqual(['a']);
    expect(nextSort(['a'], 'a', false)).toEqual([]);
    expect(nextSort(['-b'], 'a', false)).toEqual(['-a']);
    expect(nextSort(['-b', 'a', 'c'], 'a', true)).toEqual(['-b', 'c']);
    expect(nextSort(['b'], 'a', true)).toEqual(['b', '-a']);
  });

  it('groups by values, in their order', () => {
    expect(groupRows(rows, row => row.a).map(({ value, rows: members }) => [value, members.length])).toEqual([
      [1, 2],
      [3, 1],
      [null, 1],
    ]);
  });
});

it('CSV quotes separators, quotation marks and line breaks', () => {
  expect(csvLine(['a', 0.1 + 0.2, null, 'x,"y"\nz'])).toBe('a,0.30000000000000004,,"x,""y""\nz"\n');
});

it('a configuration is flattened to dotted keys; lists are JSON', () => {
  const config = { a: { b: 1, c: { d: 'x' } }, e: [1, 2], f: null, g: true };
  expect([...configLeaves(config)]).toEqual([
    ['a.b', 1],
    ['a.c.d', 'x'],
    ['e', '[1,2]'],
    ['f', 'null'],
    ['g', 'true'],
  ]);
});
