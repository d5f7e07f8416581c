// Arithmetic expressions of metrics, such as `critic/score/mean - val-env/lake/success`. Invariants: an expression can
// only read numbers; a text of any content returns an expression or a problem and never throws; nesting is bounded.
// Metric keys contain `/`, `-` and `.`, so a key ends at a blank, a comma or another operator.

import { maximum, minimum } from '../../extension/common/lists';

export interface Expression {
  /** Keys of the metrics, and `step`, in the order of their first use. */
  readonly names: readonly string[];
  /** Computes the value from the values of `names`, in the same order; NaN if a value is missing. */
  evaluate(values: ArrayLike<number>): number;
}

/** Why a text is not an expression, in one sentence; `at` is the index of the character at fault. */
export interface ExpressionProblem {
  readonly problem: string;
  readonly at: number;
}

/** The name of the training step in expressions. */
export const stepName = 'step';

/** Maximum length of an expression in characters, and maximum depth of parentheses and signs. */
const mostCharacters = 1000;
const mostDepth = 64;

const one = (of: (value: number) => number) => ({ isUnary: true, of: ([value]: readonly number[]) => of(value) });
const many = (of: (values: readonly number[]) => number) => ({ isUnary: false, of });

/** The functions; each takes one value, or one or more. */
const functions: Readonly<Record<string, { isUnary: boolean; of: (values: readonly number[]) => number }>> = {
  ...{ abs: one(Math.abs), sqrt: one(Math.sqrt), exp: one(Math.exp) },
  ...{ log: one(Math.log), log2: one(Math.log2), log10: one(Math.log10) },
  ...{ min: many(values => minimum(values)), max: many(values => maximum(values)) },
};

/** Names of the functions, for help texts. */
export const functionNames: readonly string[] = Object.keys(functions);

type Evaluate = (values: ArrayLike<number>) => number;
type Token = { kind: 'number' | 'name' | 'quoted' | 'sign' | 'end'; text: string; at: number };

/**
 * Parses a text. Operators are + - * / ^ and parentheses; ^ binds strongest and to the right, and a sign binds less
 * than ^. A key with other characters than letters, digits and `_/@.-` is written in double quotes.
 */
export function parseExpression(text: string): Expression | ExpressionProblem {
  if (text.length > mostCharacters)
    return { problem: `The expression has more than ${mostCharacters} characters.`, at: mostCharacters };
  try {
    return new Parser(text).parse();
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message, at: error.at };
    throw error;
  }
}

export const isProblem = (parsed: Expression | ExpressionProblem): parsed is ExpressionProblem => 'problem' in parsed;

class Failure extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

const pattern = /\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|([a-z_][\w/@.-]*)|"([^"]*)"|([-+*/^(),]))/iy;

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  for (let at = 0; text.slice(at).trim() !== ''; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const [whole, number, name, quoted, sign] = pattern.exec(text) ?? [];
    const begin = at + text.slice(at).search(/\S/);
    if (whole === undefined)
      throw new Failure(`The character ${text[begin]} at position ${begin + 1} is not part of an expression.`, begin);
    const kind = number !== undefined ? 'number' : name !== undefined ? 'name' : sign !== undefined ? 'sign' : 'quoted';
    tokens.push({ kind, text: number ?? name ?? sign ?? quoted, at: begin });
  }
  return [...tokens, { kind: 'end', text: '', at: text.length }];
}

class Parser {
  private readonly tokens: readonly Token[];
  private readonly names: string[] = [];
  private next = 0;
  private depth = 0;

  constructor(text: string) {
    this.tokens = tokensOf(text);
  }

  parse(): Expression {
    const evaluate = this.sum();
    if (this.token.kind !== 'end') throw this.unexpected('an operator');
    return { names: this.names, evaluate };
  }

  private get token(): Token {
    return this.tokens[this.next];
  }

  /** Takes the next token if it is one of the signs, and returns it. */
  private taken(...signs: string[]): string | undefined {
    const { kind, text } = this.token;
    if (kind !== 'sign' || !signs.includes(text)) return undefined;
    this.next++;
    return text;
  }

  private sum(): Evaluate {
    let left = this.product();
    for (let sign = this.taken('+', '-'); sign; sign = this.taken('+', '-')) {
      const [a, b, factor] = [left, this.product(), sign === '+' ? 1 : -1];
      left = values => a(values) + factor * b(values);
    }
    return left;
  }

  private product(): Evaluate {
    let left = this.signed();
    for (let sign = this.taken('*', '/'); sign; sign = this.taken('*', '/')) {
      const [a, b] = [left, this.signed()];
      left = sign === '*' ? values => a(values) * b(values) : values => a(values) / b(values);
    }
    return left;
  }

  private signed(): Evaluate {
    return this.nested(() => {
      const sign = this.taken('-', '+');
      if (sign === undefined) return this.power();
      const of = this.signed();
      return sign === '-' ? values => -of(values) : of;
    });
  }

  private power(): Evaluate {
    const base = this.atom();
    if (!this.taken('^')) return base;
    const exponent = this.signed();
    return values => base(values) ** exponent(values);
  }

  private atom(): Evaluate {
    const { kind, text, at } = this.token;
    if (this.taken('(')) return this.closed(this.sum());
    if (kind === 'sign' || kind === 'end') throw this.unexpected('a number, a metric or a parenthesis');
    this.next++;
    if (kind === 'number') {
      const value = Number(text);
      return () => value;
    }
    if (kind === 'name' && this.token.kind === 'sign' && this.token.text === '(') return this.call(text, at);
    if (!this.names.includes(text)) this.names.push(text);
    const index = this.names.indexOf(text);
    return values => values[index] ?? Number.NaN;
  }

  private call(name: string, at: number): Evaluate {
    const known = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (!known) throw new Failure(`${name} is not a function: use ${functionNames.join(', ')}.`, at);
    this.next++;
    const parts = [this.sum()];
    while (this.taken(',')) parts.push(this.sum());
    if (known.isUnary && parts.length !== 1) throw new Failure(`${name} takes one value, and has ${parts.length}.`, at);
    return this.closed(values => known.of(parts.map(part => part(values))));
  }

  private closed(inner: Evaluate): Evaluate {
    if (!this.taken(')')) throw this.unexpected('a closing parenthesis');
    return inner;
  }

  private nested(parse: () => Evaluate): Evaluate {
    if (++this.depth > mostDepth)
      throw new Failure(`The expression is nested more than ${mostDepth} times.`, this.token.at);
    const inner = parse();
    this.depth--;
    return inner;
  }

  private unexpected(wanted: string): Failure {
    const { kind, text, at } = this.token;
    const found = kind === 'end' ? 'the expression ends' : `${text} stands`;
    return new Failure(`At position ${at + 1} ${found}, where ${wanted} is needed.`, at);
  }
}
