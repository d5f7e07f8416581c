// The built-in reward components on arbitrary texts: their ranges, and how they change with the thought.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { grounding } from '../../../envs/api/rewards/grounding';
import { repetition } from '../../../envs/api/rewards/repetition';
import { thoughtLength } from '../../../envs/api/rewards/thought-length';

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc
    .array(fc.constantFrom('wall', 'the', 'box', '(1, 2)', '[3,-4]', '7', '7.50', '-0', '#', ',', '(', '1,'), {
      maxLength: 60,
    })
    .map(parts => parts.join(' ')),
);
const thought = fc.option(text);

test('values are in 0…1 for any text', () => {
  fc.assert(
    fc.property(
      text,
      thought,
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 0, max: 50 }),
      (state, thought, min, more) => {
        const values = [
          thoughtLength({ thought }, { min, max: min + more }),
          repetition({ thought }, { size: min }),
          grounding({ state, thought }) ?? 0,
        ];
        for (const value of values) expect(value >= 0 && value <= 1).toBe(true);
      },
    ),
  );
});

test('a thought that quotes the state is grounded, and a false number never helps', () => {
  fc.assert(
    fc.property(text, thought, (state, thought) => {
      const value = grounding({ state, thought });
      expect(grounding({ state, thought: state })).toBe(value === undefined ? undefined : 1);
      if (value === undefined) return;
      expect(grounding({ state, thought: `${thought ?? ''} (991, 992) ` })!).toBeLessThanOrEqual(value);
    }),
  );
});

test('the length falls with the distance from the range, and a doubled thought repeats itself', () => {
  const some = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(some, fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const [once, twice] = [parts.join(' '), [...parts, ...parts].join(' ')];
      const range = { min: 5, max: 20 };
      const [short, long] = [Math.min(parts.length, 5), Math.max(parts.length, 20)];
      const of = (count: number) => thoughtLength({ thought: 'w '.repeat(count) }, range);
      expect(of(short - 1)).toBeLessThan(of(short));
      expect(of(long + 1)).toBeLessThanOrEqual(of(long));
      if (parts.length >= size)
        expect(repetition({ thought: twice }, { size })).toBeGreaterThanOrEqual(
          repetition({ thought: once }, { size }),
        );
    }),
  );
});

test('text that repeats a bracket takes linear time', () => {
  for (const part of ['(', '(1,', '-', '1.', ' ', '(1 ', `(${' '.repeat(100)}`]) {
    const long = part.repeat(100_000 / part.length);
    grounding({ state: long, thought: long });
    repetition({ thought: long }, { size: 3 });
  }
});
