// Expressions of metrics: values against JavaScript's own arithmetic, precedence, problems, and curves that grow.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { isProblem, parseExpression } from '../../../../webview/charts/expression';

/** Returns the value of an expression for metrics by name. */
function valueOf(text: string, metrics: Record<string, number> = {}): number {
  const parsed = parseExpression(text);
  if (isProblem(parsed)) throw new Error(parsed.problem);
  return parsed.evaluate(parsed.names.map(name => metrics[name]));
}
const problemOf = (text: string): string => {
  const parsed = parseExpression(text);
  return isProblem(parsed) ? parsed.problem : '';
};

describe('an expression', () => {
  it.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['-2^2', -4],
    ['2^-1', 0.5],
    ['2^3^2', 512],
    ['8 / 4 / 2', 1],
    ['7 - 2 - 1', 4],
    ['- -3', 3],
    ['1e3 + .5', 1000.5],
    ['max(1, 5, 3) - min(2, 4)', 3],
    ['log10(1000) + sqrt(16) + abs(-1) + log2(8) + exp(0) + log(1)', 3 + 4 + 1 + 3 + 1],
  ])('%s is %d', (text, value) => expect(valueOf(text)).toBeCloseTo(value, 12));

  it('reads metrics whose keys contain operators', () => {
    const metrics = { 'val-env/lake/success': 0.75, 'train/lake/success': 0.5, step: 10 };
    expect(valueOf('val-env/lake/success - train/lake/success', metrics)).toBe(0.25);
    expect(valueOf('100*(train/lake/success)/step', metrics)).toBe(5);
    expect(valueOf('"odd key (%)" * 2', { 'odd key (%)': 4 })).toBe(8);
    expect(valueOf('val-env/lake/success + 1')).toBeNaN();
  });

  it.each([
    ['', 'At position 1 the expression ends, where a number, a metric or a parenthesis is needed.'],
    ['1 +', 'At position 4 the expression ends, where a number, a metric or a parenthesis is needed.'],
    ['(1', 'At position 3 the expression ends, where a closing parenthesis is needed.'],
    ['1 2', 'At position 3 2 stands, where an operator is needed.'],
    ['a $ b', 'The character $ at position 3 is not part of an expression.'],
    ['mean(a)', 'mean is not a function: use abs, sqrt, exp, log, log2, log10, min, max.'],
    ['log(1, 2)', 'log takes one value, and has 2.'],
    ['constructor(1)', 'constructor is not a function: use abs, sqrt, exp, log, log2, log10, min, max.'],
    ['('.repeat(80), 'The expression is nested more than 64 times.'],
    ['1'.repeat(1001), 'The expression has more than 1000 characters.'],
  ])('%s has a problem', (text, problem) => expect(problemOf(text)).toBe(problem));
});

type Tree = { text: string; value: number };
const leaf = fc.oneof(
  fc.integer({ min: 0, max: 1000 }).map(value => ({ text: String(value), value })),
  fc.constantFrom(['a/b', 2.5], ['x_y@8', -3]).map(([text, value]) => ({ text: String(text), value: Number(value) })),
);
const { tree } = fc.letrec<{ tree: Tree }>(tie => ({
  tree: fc.oneof(
    { maxDepth: 5 },
    leaf,
    fc.tuple(fc.constantFrom('+', '-', '*', '/'), tie('tree'), tie('tree')).map(([sign, a, b]) => ({
      text: `(${a.text} ${sign} ${b.text})`,
      value: { '+': a.value + b.value, '-': a.value - b.value, '*': a.value * b.value, '/': a.value / b.value }[sign],
    })),
    tie('tree').map(a => ({ text: `abs(-${a.text})`, value: Math.abs(a.value) })),
  ),
}));

test('an expression has the value of its tree', () => {
  fc.assert(
    fc.property(tree, ({ text, value }) => {
      expect(valueOf(text, { 'a/b': 2.5, 'x_y@8': -3 })).toBe(value);
    }),
  );
});

test('any text is an expression or a problem', () => {
  const parts = fc.constantFrom('(', ')', '+', '-', '^', '/', ',', '1', 'a/b', 'max(', '"', ' ', '.', 'é', '=');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(parts).map(all => all.join('')),
      ),
      text => {
        const parsed = parseExpression(text);
        if (isProblem(parsed)) expect(parsed.at).toBeLessThanOrEqual(text.length);
        else expect(typeof parsed.evaluate(parsed.names.map(() => 1))).toBe('number');
      },
    ),
  );
});
