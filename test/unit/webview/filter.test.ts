import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EpisodeRow } from '../../../extension/protocol/pages';
import {
  needsText,
  parseFilter,
  rowMatches,
  stepFilter,
  textMatches,
  type NumberField,
  type Term,
} from '../../../webview/episodes/filter';

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
const passes = (line: string) => rowMatches(parseFilter(line).terms, row);

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
    ['success:', true],
    ['step:', true],
  ])('%s → %s', (line, expected) => {
    expect(parseFilter(line).problems).toEqual([]);
    expect(passes(line)).toBe(expected);
  });

  it.each([
    [
      'sucess:false',
      '“sucess” is no field: use success, kept, return, score, advantage, turns, tokens, step, group, member, tag, id, mode or text',
    ],
    ['success:maybe', 'success is true or false, not “maybe”'],
    ['success<true', 'success is true or false, not “true”'],
    ['step:forty', 'step needs a number or a range as 1..5, not “forty”'],
    ['step:1..x', 'step needs a number or a range as 1..5, not “1..x”'],
    ['step<1..2', 'step needs a number or a range as 1..5, not “1..2”'],
    ['tag<a', 'tag is a text: write tag:a'],
    ['mode:test', 'mode is train or val, not “test”'],
  ])('%s says what is wrong', (line, problem) => {
    expect(parseFilter(line)).toEqual({ terms: [], problems: [problem] });
  });

  it('looks for texts in all that was read, words without a field among them', () => {
    const search = (line: string, content: string) => textMatches(parseFilter(line).terms, row, content);
    expect(search('text:"I am stuck"', 'oh, i am STUCK here')).toBe(true);
    expect(search('stuck wall', 'stuck at the wall')).toBe(true);
    expect(search('stuck wall', 'stuck')).toBe(false);
    expect(search('-stuck', 'stuck')).toBe(false);
    expect(search('"g003"', '')).toBe(true);
    expect(search('sokoban', '')).toBe(true);
    expect(search('text:"half open', 'a half open quote')).toBe(true);
    expect(search('success:true', '')).toBe(true);
    expect([needsText(parseFilter('wall').terms), needsText(parseFilter('step:3').terms)]).toEqual([true, false]);
  });

  it('tells which steps it may need', () => {
    expect(stepFilter(parseFilter('success:true').terms)).toBeUndefined();
    const wanted = stepFilter(parseFilter('step:40..60 -step:50').terms)!;
    expect([39, 40, 50, 60, 61].filter(wanted)).toEqual([40, 60]);
  });
});

const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 }).map(value => value || 0);
const field = fc.constantFrom<NumberField>(
  'return',
  'score',
  'advantage',
  'turns',
  'tokens',
  'step',
  'group',
  'member',
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

/** The line that should read as these terms. */
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
  it('reads what it printed', () => {
    fc.assert(
      fc.property(fc.array(term, { maxLength: 6 }), terms => {
        expect(parseFilter(printFilter(terms))).toEqual({ terms, problems: [] });
      }),
    );
  });

  it('never throws, and drops nothing in silence but what is being typed', () => {
    fc.assert(
      fc.property(fc.string(), line => {
        const { terms, problems } = parseFilter(line);
        rowMatches(terms, row);
        textMatches(terms, row, line);
        const pieces = line.match(/(?:"[^"]*(?:"|$)|[^\s"])+/g) ?? [];
        const empty = pieces.filter(piece => /^-$|^-?([a-zA-Z_]+(<=|>=|:|=|<|>))?"*$/.test(piece));
        expect(terms.length + problems.length).toBe(pieces.length - empty.length);
      }),
      { numRuns: 500 },
    );
  });

  it('lets through either a term or its opposite', () => {
    fc.assert(
      fc.property(term, one => {
        const both = [one, { ...one, not: !one.not }].map(
          each => rowMatches([each], row) && textMatches([each], row, ''),
        );
        expect(both[0]).toBe(!both[1]);
      }),
    );
  });
});
