// Patterns of metric keys: they match what the equivalent regular expression matches, and take no time to speak of.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { matcher } from '../../../extension/run-data/charts/key-pattern';

const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.'), maxLength: 12 });
const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '.', '*'), maxLength: 8 });

it('matches as a regular expression does', () => {
  fc.assert(
    fc.property(pattern, text, (pattern, text) => {
      const parts = pattern.split('*').map(part => part.replaceAll('.', '\\.'));
      expect(matcher(pattern)(text)).toBe(new RegExp(`^${parts.join('[^/]+')}$`).test(text));
    }),
    { numRuns: 5000 },
  );
});

it('decides on many stars in a long key, for which a regular expression would need ages', () => {
  expect(matcher('*a'.repeat(100))(`${'a'.repeat(5000)}b`)).toBe(false);
  expect(matcher('*a'.repeat(100))('a'.repeat(5000))).toBe(true);
});
