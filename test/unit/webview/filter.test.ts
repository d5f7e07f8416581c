import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import {
  namesMode,
  parseFilter,
  rowTest,
  textTerms,
  type NumberField,
  type Term,
} from '../../../extension/run-data/episode-filter';
import { tableOf } from './rows';

const row: EpisodeRow = {
  id: 'train-000050-g003-m05',
  step: 50,
  mode: 'train',
  group_id: 3,
  member: 5,
  tag: 'CoordSokoban',
  success: false,
  score: -0.6,
  reward: -0.5,
  advantage: null,
  turns: 4,
  tokens: 210,
  kept: true,
};
const table = tableOf([{ ...row, seed: 10144, invalid: 2 }]);
const passes = (line: string) => rowTest(parseFilter(line).terms, table)(0);

describe('a filter line', () => {
  it.each([
    ['', true],
    ['success:false', true],
    ['success:true', false],
    ['success:no kept:yes', true],
    ['return<0', true],
    ['return<-0.5', false],
    ['return<=-0.5', true],
    ['score:-0.6', true],
    ['score=−0.6', true],
    ['step:40..60', true],
    ['step:51..', false],
    ['step:..50', true],
    ['group:3 member:5', true],
    ['-group:3', false],
    ['turns>4', false],
    ['turns>=4', true],
    ['tokens:200..300', true],
    ['tag:sokoban', true],
    ['tag:"CoordSokoban"', true],
    ['-tag:lake', true],
    ['mode:val', false],
    ['MODE:TRAIN', true],
    ['id:g003', true],
    ['advantage>0', false],
    ['advantage<=0', false],
    ['reward<0', true],
    ['length>200', true],
    ['invalid>0', true],
    ['invalid:0', false],
    ['seed:10144', true],
    ['success:', true],
    ['step:', true],
  ])('%s → %s', (line, expected) => {
    expect(parseFilter(line).problems).toEqual([]);
    expect(passes(line)).toBe(expected);
  });

  it.each([
    [
      'sucess:false',
      '“sucess” is not a field: use success, kept, return, score, advantage, turns, tokens, invalid, step, group, member, seed, tag, id, mode or text',
    ],
    ['success:maybe', 'success is true or false, not “maybe”'],
    ['success<true', 'success is true or false, not “true”'],
    ['step:forty', 'step needs a number or a range such as 1..5, not “forty”'],
    ['step:1..x', 'step needs a number or a range such as 1..5, not “1..x”'],
    ['step<1..2', 'step needs a number or a range such as 1..5, not “1..2”'],
    ['tag<a', 'tag is a text, so “<” does not apply: write tag:a'],
    ['mode:test', 'mode is train or val, not “test”'],
  ])('%s shows its error', (line, problem) => {
    expect(parseFilter(line)).toEqual({ terms: [], problems: [problem] });
  });

  it('keeps search texts apart, including words without a field', () => {
    expect(textTerms(parseFilter('text:"I am stuck" step:3 wall -"half open').terms)).toEqual([
      { value: 'I am stuck', not: false },
      { value: 'wall', not: false },
      { value: 'half open', not: true },
    ]);
    expect(passes('whatever')).toBe(true);
  });

  it('reports whether it selects training or validation itself', () => {
    expect(['mode:val', '-mode:train', 'step:3'].map(line => namesMode(parseFilter(line).terms))).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('rejects episodes without the number or without a filter result', () => {
    const none = tableOf([{ ...row, mode: 'val', kept: null }]);
    const of = (line: string) => rowTest(parseFilter(line).terms, none)(0);
    expect(['kept:true', 'kept:false', 'advantage<=0', '-kept:true'].map(of)).toEqual([false, false, false, true]);
  });
});

const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }).map(value => value || 0);
const field = fc.constantFrom<NumberField>(
  'return',
  'score',
  'advantage',
  'turns',
  'tokens',
  'invalid',
  'step',
  'group',
  'member',
  'seed',
);
const term: fc.Arbitrary<Term> = fc.oneof(
  fc.record({
    kind: fc.constant('flag' as const),
    field: fc.constantFrom('success' as const, 'kept' as const),
    value: fc.boolean(),
    not: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('text' as const),
    field: fc.constantFrom('tag' as const, 'id' as const, 'text' as const),
    value: fc.string({ minLength: 1 }).filter(text => !text.includes('"')),
    not: fc.boolean(),
  }),
  fc.tuple(field, number, number, fc.boolean()).map(([name, a, b, not]) => ({
    kind: 'number' as const,
    field: name,
    low: Math.min(a, b),
    high: Math.max(a, b),
    openLow: false,
    openHigh: false,
    not,
  })),
  fc.tuple(field, number, fc.boolean(), fc.boolean()).map(([name, bound, above, not]) => ({
    kind: 'number' as const,
    field: name,
    low: above ? bound : -Infinity,
    high: above ? Infinity : bound,
    openLow: above,
    openHigh: !above,
    not,
  })),
);

fc.configureGlobal({ seed: 20260203 });

/** Prints terms as a filter line that parses to them. */
const printFilter = (terms: readonly Term[]) => terms.map(term => (term.not ? '-' : '') + printTerm(term)).join(' ');

function printTerm(term: Term): string {
  switch (term.kind) {
    case 'flag':
      return `${term.field}:${term.value}`;
    case 'text':
      return `${term.field}:"${term.value}"`;
    case 'number': {
      const { field, low, high, openLow, openHigh } = term;
      if (openLow) return `${field}>${low}`;
      if (openHigh) return `${field}<${high}`;
      if (low === high) return `${field}:${low}`;
      return `${field}:${low === -Infinity ? '' : low}..${high === Infinity ? '' : high}`;
    }
  }
}

describe('any filter', () => {
  it('parses what it printed', () => {
    fc.assert(
      fc.property(fc.array(term, { maxLength: 6 }), terms => {
        expect(parseFilter(printFilter(terms))).toEqual({ terms, problems: [] });
      }),
    );
  });

  it('never throws, and silently drops only what is still being typed', () => {
    fc.assert(
      fc.property(fc.string(), line => {
        const { terms, problems } = parseFilter(line);
        rowTest(terms, table)(0);
        textTerms(terms);
        const pieces = line.match(/(?:"[^"]*(?:"|$)|[^\s"])+/g) ?? [];
        const empty = pieces.filter(piece => /^-$|^-?([a-zA-Z_]+(<=|>=|:|=|<|>))?"*$/.test(piece));
        expect(terms.length + problems.length).toBe(pieces.length - empty.length);
      }),
      { numRuns: 500 },
    );
  });

  it('accepts either a term or its negation, and may search for a text', () => {
    fc.assert(
      fc.property(term, one => {
        const opposite = { ...one, not: !one.not };
        if (textTerms([one]).length > 0)
          expect(textTerms([opposite])).toEqual([{ ...textTerms([one])[0], not: opposite.not }]);
        else expect(rowTest([one], table)(0)).toBe(!rowTest([opposite], table)(0));
      }),
    );
  });
});
