// Finds an expression that uses all given numbers and equals the target. An exhaustive search repeatedly combines two
// terms into one until a single term is left. Values are exact fractions. Four numbers need at most a few thousand
// combinations.

interface Term {
  /** Numerator and denominator of the value. */
  top: number;
  bottom: number;
  text: string;
  /** Top-level operator of the text. It determines whether the text needs parentheses. `product` includes quotients. */
  kind: 'number' | 'sum' | 'product';
}

/**
 * Returns the first expression found; undefined if none equals the target. Sums and differences are tried before
 * products and quotients.
 */
export function solveCountdown(numbers: readonly number[], target: number): string | undefined {
  return search(
    numbers.map(number => ({ top: number, bottom: 1, text: `${number}`, kind: 'number' })),
    target,
  );
}

function search(terms: readonly Term[], target: number): string | undefined {
  if (terms.length === 1) return terms[0].top === target * terms[0].bottom ? terms[0].text : undefined;
  for (const join of joins)
    for (let i = 0; i < terms.length; i++)
      for (let j = 0; j < terms.length; j++) {
        if (i === j) continue;
        const made = join(terms[i], terms[j]);
        if (!made) continue;
        const found = search([made, ...terms.filter((_, k) => k !== i && k !== j)], target);
        if (found !== undefined) return found;
      }
  return undefined;
}

const inParentheses = (term: Term, kinds: readonly Term['kind'][]) =>
  kinds.includes(term.kind) ? `(${term.text})` : term.text;

const joins: readonly ((a: Term, b: Term) => Term | undefined)[] = [
  (a, b) => ({
    top: a.top * b.bottom + b.top * a.bottom,
    bottom: a.bottom * b.bottom,
    text: `${a.text} + ${b.text}`,
    kind: 'sum',
  }),
  (a, b) => ({
    top: a.top * b.bottom - b.top * a.bottom,
    bottom: a.bottom * b.bottom,
    text: `${a.text} - ${inParentheses(b, ['sum'])}`,
    kind: 'sum',
  }),
  (a, b) => ({
    top: a.top * b.top,
    bottom: a.bottom * b.bottom,
    text: `${inParentheses(a, ['sum'])} * ${inParentheses(b, ['sum', 'product'])}`,
    kind: 'product',
  }),
  (a, b) =>
    b.top === 0
      ? undefined
      : {
          top: a.top * b.bottom,
          bottom: a.bottom * b.top,
          text: `${inParentheses(a, ['sum'])} / ${inParentheses(b, ['sum', 'product'])}`,
          kind: 'product',
        },
];
