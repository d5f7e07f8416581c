// Evaluates arithmetic expressions as Python's `eval` does, without executing code. Accepts integers and floats, signs,
// parentheses and the operators + − * / // % **. Rejects names, calls, comparisons, leading zeros and trailing text.

/** A Python number: a bigint stands for a Python int, a number for a Python float. */
export type PythonNumber = bigint | number;

/**
 * Maximum size of an integer in bits. If an expression leads to a larger integer, as `9 ** 9 ** 9` does, `evaluate`
 * returns undefined, because the integer could exhaust memory.
 */
const mostBits = 4096;

class NoValue extends Error {}

/**
 * Returns the value of an expression. Returns undefined if Python would raise an error, or if the value is complex,
 * infinite or too large.
 */
export function evaluate(text: string): PythonNumber | undefined {
  try {
    const value = new Parser(tokens(text)).whole();
    return typeof value === 'bigint' || Number.isFinite(value) ? value : undefined;
  } catch (error) {
    if (error instanceof NoValue || error instanceof RangeError) return undefined; // RangeError: stack overflow
    throw error;
  }
}

const number = /(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?/y;
const operator = /\*\*|\/\/|[-+*/%()~]/y;
const blank = /[ \t\f]+|#[^\n]*/y;
/** A decimal integer literal of Python: without leading zeros, except for zero itself. */
const integer = /^(?:[1-9](?:_?\d)*|0(?:_?0)*)$/;

function tokens(text: string): (string | PythonNumber)[] {
  const found: (string | PythonNumber)[] = [];
  const source = text.trim();
  let depth = 0;
  const match = (form: RegExp, at: number) => {
    form.lastIndex = at;
    return form.exec(source)?.[0];
  };
  for (let at = 0; at < source.length;) {
    const space = match(blank, at) ?? (depth > 0 && /[\r\n]/.test(source[at]) ? source[at] : undefined);
    const digits = space === undefined ? match(number, at) : undefined;
    const sign = space === undefined && digits === undefined ? match(operator, at) : undefined;
    const token = space ?? digits ?? sign;
    if (token === undefined) throw new NoValue();
    if (digits !== undefined) {
      const plain = digits.replaceAll('_', '');
      if (/[.eE]/.test(digits)) found.push(Number(plain));
      else if (integer.test(digits)) found.push(BigInt(plain));
      else throw new NoValue();
    } else if (sign !== undefined) {
      found.push(sign);
      depth += sign === '(' ? 1 : sign === ')' ? -1 : 0;
    }
    at += token.length;
  }
  return found;
}

/**
 * Recursive-descent parser of Python's arithmetic grammar: an expression is a sum, a term of the sum is a product, and
 * a factor of the product is a power with optional signs.
 */
class Parser {
  private at = 0;
  constructor(private readonly tokens: readonly (string | PythonNumber)[]) {}

  whole(): PythonNumber {
    const value = this.sum();
    if (this.at < this.tokens.length) throw new NoValue();
    return value;
  }

  private take(...signs: string[]): string | undefined {
    const token = this.tokens[this.at];
    if (typeof token !== 'string' || !signs.includes(token)) return undefined;
    this.at++;
    return token;
  }

  private sum(): PythonNumber {
    let value = this.product();
    for (let sign = this.take('+', '-'); sign; sign = this.take('+', '-')) value = apply(sign, value, this.product());
    return value;
  }

  private product(): PythonNumber {
    const signs = ['*', '/', '//', '%'];
    let value = this.signed();
    for (let sign = this.take(...signs); sign; sign = this.take(...signs)) value = apply(sign, value, this.signed());
    return value;
  }

  private signed(): PythonNumber {
    const sign = this.take('+', '-', '~');
    if (sign === undefined) return this.power();
    const value = this.signed();
    if (sign === '+') return value;
    if (sign === '-') return -value;
    if (typeof value === 'number') throw new NoValue();
    return ~value;
  }

  private power(): PythonNumber {
    const base = this.atom();
    return this.take('**') ? power(base, this.signed()) : base;
  }

  private atom(): PythonNumber {
    const token = this.tokens[this.at++];
    if (typeof token === 'bigint' || typeof token === 'number') return token;
    if (token !== '(') throw new NoValue();
    const value = this.sum();
    if (!this.take(')')) throw new NoValue();
    return value;
  }
}

function apply(sign: string, a: PythonNumber, b: PythonNumber): PythonNumber {
  if (typeof a === 'bigint' && typeof b === 'bigint' && sign !== '/') {
    if (sign === '+') return bounded(a + b);
    if (sign === '-') return bounded(a - b);
    if (sign === '*') return bounded(a * b);
    if (b === 0n) throw new NoValue();
    const rest = ((a % b) + b) % b; // has the sign of the divisor, as in Python
    return sign === '%' ? rest : (a - rest) / b;
  }
  const [x, y] = [float(a), float(b)];
  if (sign === '+') return x + y;
  if (sign === '-') return x - y;
  if (sign === '*') return x * y;
  if (y === 0) throw new NoValue();
  if (sign === '/') return x / y;
  const remainder = x % y;
  const rest = remainder !== 0 && remainder < 0 !== y < 0 ? remainder + y : remainder;
  return sign === '%' ? rest : Math.round((x - rest) / y);
}

function power(base: PythonNumber, exponent: PythonNumber): PythonNumber {
  if (typeof base === 'bigint' && typeof exponent === 'bigint' && exponent >= 0n) {
    const bits = base === 0n || base === 1n || base === -1n ? 1 : base.toString(2).length;
    if (bits > 1 && Number(exponent) * bits > 2 * mostBits) throw new NoValue();
    return bounded(
      base ** (bits > 1 ? exponent : exponent % 2n === 0n && exponent > 0n ? 2n : exponent === 0n ? 0n : 1n),
    );
  }
  const [x, y] = [float(base), float(exponent)];
  if (x === 0 && y < 0) throw new NoValue();
  if (x < 0 && !Number.isInteger(y)) throw new NoValue(); // complex in Python, never equal to a target
  const value = x ** y;
  if (Math.abs(value) === Infinity && Number.isFinite(x) && Number.isFinite(y)) throw new NoValue();
  return value;
}

/**
 * Converts an integer to a float. Throws NoValue if the integer is too large for a float; Python raises an error in
 * this case.
 */
function float(value: PythonNumber): number {
  const converted = Number(value);
  if (typeof value === 'bigint' && !Number.isFinite(converted)) throw new NoValue();
  return converted;
}

function bounded(value: bigint): bigint {
  if (value > 1n << BigInt(mostBits) || -value > 1n << BigInt(mostBits)) throw new NoValue();
  return value;
}
