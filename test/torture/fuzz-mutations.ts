// Seeded mutations of valid inputs. Structural mutations use a format (values and keys of JSON, values and lines of
// YAML), so that many results still parse and reach the code behind the parser; byte mutations use no format. An input
// is determined by (seed, target, number) and is therefore reproducible. No input is longer than `mostBytes`.
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { textHash } from '../../extension/run-data/episode-index-line';

/** Maximum length of an input in bytes. */
export const mostBytes = 4096;

/** Format of a target's inputs. */
export type InputForm = 'bytes' | 'text' | 'json' | 'lines' | 'yaml';

/** The random stream of an input. */
export const streamOf = (seed: number, target: string, number: number): RandomStream =>
  new RandomStream(textHash(`${seed} ${target} ${number}`));

/**
 * Strings that commonly break parsers: prototype names, path traversal, boundary numbers, unusual Unicode characters.
 */
const words = [
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', '"__proto__":{"polluted":1},'],
  ...[
    '../',
    '../../../../../../etc/passwd',
    '..\\',
    '/etc/passwd',
    '%2e%2e%2f',
    '..%2F',
    'C:\\',
    'file:///',
    '\\\\host\\share',
    '~/',
  ],
  ...[
    '1e999',
    '-1e999',
    '1e308',
    '9007199254740993',
    '-9007199254740993',
    '4294967296',
    '2147483648',
    '-1',
    '-0',
    '0',
    '1e-320',
    'NaN',
  ],
  ...[
    'Infinity',
    '.inf',
    '.nan',
    '0x7fffffff',
    '0o777',
    '99999999999999999999999999',
    '1_000',
    '1.5',
    '1e9',
    '1000000000',
    'null',
    'true',
    '~',
  ],
  ...[
    '[]',
    '{}',
    '""',
    '[[[[[[[[',
    '{"a":{"a":{"a":',
    ']',
    '}',
    '"',
    "'",
    '\\',
    '\\u0000',
    '\\ud800',
    '\\"',
    ',',
    ':',
    '|',
    '>',
    '&a',
    '*a',
    '!!js',
  ],
  ...[
    '\u0000',
    '\ufeff',
    '\u2028',
    '\u2029',
    '\u202e',
    '\ud83d\ude00',
    '\u0130',
    'ß',
    'e\u0301',
    '\u200d',
    '\r\n',
    '\n',
    '\t',
    '\u0085',
    ' ',
  ],
  ...[
    '${a}',
    '${a.b}',
    '${__proto__}',
    '{{',
    '}}',
    '{%',
    '%}',
    '<<',
    '<<: *a',
    '---\n',
    '...\n',
    '%YAML 9.9\n',
    '? ',
    '- ',
    '# ',
  ],
  ...[
    '<think>',
    '</think>',
    '<answer>',
    '</answer>',
    '<|im_end|>',
    '||',
    'Content-Length: 99999999999\r\n',
    'Transfer-Encoding: chunked\r\n',
  ],
];

/** Strings to nest or to repeat until the input has its maximum length. */
const openers = [
  ...[
    '[',
    '{"a":',
    '{a: ',
    '? ',
    '- ',
    '(',
    '{% if x %}',
    '{% for a in b %}',
    '{{ (',
    '<think>',
    '</think><answer>',
    '<think></think>',
  ],
  ...[
    '\n',
    ' ',
    '\t',
    'a',
    '0',
    '\\',
    '"',
    '&a [*a, ',
    '!a ',
    '> ',
    '|\n',
    'a: ',
    '- ? ',
    '--',
    '\u0000',
    '\u00ff',
    '../',
    '\r\n',
    ',',
    ';=',
  ],
];

/** Applies one or more mutations to an entry of the corpus. */
export function mutated(corpus: readonly Buffer[], form: InputForm, stream: RandomStream): Buffer {
  let input = pick(corpus, stream);
  if (stream.uniform() < 0.02) return input; // unmutated, because valid inputs must be accepted
  const aware = form === 'json' || form === 'lines' || form === 'yaml';
  if (aware && stream.uniform() < 0.7) {
    input = form === 'yaml' ? yamlMutated(input, corpus, stream) : jsonMutated(input, corpus, form, stream);
    if (stream.uniform() < 0.7) return input.subarray(0, mostBytes);
  }
  for (let times = 1 + stream.integer(4); times > 0; times--) input = bytesMutated(input, corpus, stream);
  return input.subarray(0, mostBytes);
}

const pick = <T>(list: readonly T[], stream: RandomStream): T => list[stream.integer(list.length)];

/** A range [from, to) of a buffer, usually short. */
function part(input: Buffer, stream: RandomStream): [from: number, to: number] {
  const from = stream.integer(input.length + 1);
  const longest = stream.uniform() < 0.7 ? 16 : input.length;
  return [from, Math.min(input.length, from + stream.integer(longest + 1))];
}

const inserted = (input: Buffer, at: number, middle: Buffer, until = at): Buffer =>
  Buffer.concat([input.subarray(0, at), middle, input.subarray(until)]).subarray(0, mostBytes);

/** Applies one mutation that is independent of the format. */
function bytesMutated(input: Buffer, corpus: readonly Buffer[], stream: RandomStream): Buffer {
  const [from, to] = part(input, stream);
  const cut = (buffer: Buffer): Buffer => buffer.subarray(...part(buffer, stream));
  switch (stream.integer(12)) {
    case 0: {
      if (input.length === 0) return input;
      const flipped = Buffer.from(input);
      for (let bits = 1 + stream.integer(4); bits > 0; bits--)
        flipped[stream.integer(flipped.length)] ^= 1 << stream.integer(8);
      return flipped;
    }
    case 1:
      return inserted(input, from, Buffer.from([stream.integer(256)]), Math.min(input.length, from + 1));
    case 2:
      return inserted(input, from, Buffer.alloc(0), to);
    case 3:
      return inserted(input, from, repeated(input.subarray(from, to), stream), to);
    case 4:
      return inserted(input, from, cut(pick(corpus, stream)), to);
    case 5:
      return Buffer.concat([input.subarray(0, from), pick(corpus, stream).subarray(from)]).subarray(0, mostBytes);
    case 6:
    case 7:
    case 8:
      return inserted(input, from, Buffer.from(pick(words, stream)), stream.uniform() < 0.5 ? from : to);
    case 9:
      return input.subarray(0, from);
    case 10:
      return inserted(input, from, repeated(Buffer.from(pick(openers, stream)), stream));
    default: {
      // Replaces a number in the text by a boundary value.
      const numbers = [...input.toString('latin1').matchAll(/\d+(\.\d+)?/g)];
      if (numbers.length === 0) return input;
      const { index, 0: digits } = pick(numbers, stream);
      const borders = ['0', '-1', '1e308', '9007199254740993', '4294967295', '2147483648', '1.5', '99999', '1e400'];
      return inserted(input, index, Buffer.from(pick(borders, stream)), index + digits.length);
    }
  }
}

/** Repeats a slice twice, up to 61 times, or to a power-of-two length of at most the maximum of an input. */
function repeated(slice: Buffer, stream: RandomStream): Buffer {
  if (slice.length === 0) return slice;
  const bytes = [2 * slice.length, slice.length * (2 + stream.integer(60)), 2 ** (6 + stream.integer(7))];
  return Buffer.alloc(Math.min(mostBytes, pick(bytes, stream)), slice);
}

/** A JSON value, or one line of JSON Lines, with values and keys changed. */
function jsonMutated(input: Buffer, corpus: readonly Buffer[], form: InputForm, stream: RandomStream): Buffer {
  const lines = form === 'lines' ? input.toString('utf8').split('\n') : [input.toString('utf8')];
  const at = stream.integer(lines.length);
  const other = pick(corpus, stream).toString('utf8');
  const value = parsed(lines[at]);
  if (value === undefined) return input;
  const donor = parsed(form === 'lines' ? pick(other.split('\n'), stream) : other) ?? null;
  lines[at] = changedJson(value, donor, stream);
  return Buffer.from(lines.join('\n'));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Slot = { holder: Record<string, unknown> | unknown[]; key: string | number };

/** Prefix of text that is inserted verbatim, because JSON.stringify cannot produce it. */
const rawMark = '\u0001raw:';

function changedJson(value: unknown, donor: unknown, stream: RandomStream): string {
  const root = { value };
  for (let times = 1 + stream.integer(3); times > 0; times--) {
    const slots = slotsIn(root);
    const { holder, key } = pick(slots, stream) as { holder: Record<string | number, unknown>; key: string };
    switch (stream.integer(8)) {
      case 0:
      case 1:
      case 2:
        holder[key] = strange(stream);
        break;
      case 3:
        holder[key] = structuredClone(pick(slotsIn({ donor }), stream).holder);
        break;
      case 4:
        if (Array.isArray(holder)) holder.splice(Number(key), 1);
        else if ((holder as unknown) !== root) delete holder[key];
        break;
      case 5:
        if (!Array.isArray(holder) && (holder as unknown) !== root) {
          const name = pick(words, stream);
          Object.defineProperty(holder, name, {
            value: strange(stream),
            enumerable: true,
            configurable: true,
            writable: true,
          });
        }
        break;
      case 6: {
        const { [key]: child } = holder;
        if (Array.isArray(child) && child.length > 0 && child.length < 1000)
          holder[key] = Array.from({ length: 2 + stream.integer(300) }, (_, i): unknown => child[i % child.length]);
        else holder[key] = [child];
        break;
      }
      default:
        holder[key] = `${rawMark}${nested(stream)}`;
    }
  }
  const text = JSON.stringify(root.value) ?? 'null';
  return text.replace(/"\\u0001raw:((?:[^"\\]|\\.)*)"/g, (_, raw: string) => JSON.parse(`"${raw}"`) as string);
}

function slotsIn(root: object): Slot[] {
  const slots: Slot[] = [];
  const go = (holder: Record<string, unknown> | unknown[], depth: number): void => {
    for (const key of Object.keys(holder)) {
      if (slots.length > 500) return;
      slots.push({ holder, key });
      const child: unknown = (holder as Record<string, unknown>)[key];
      if (typeof child === 'object' && child !== null && depth < 20) go(child as Record<string, unknown>, depth + 1);
    }
  };
  go(root as Record<string, unknown>, 0);
  return slots;
}

function strange(stream: RandomStream): unknown {
  const others = [
    null,
    true,
    false,
    0,
    -1,
    1,
    1.5,
    -0,
    1e308,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    -(2 ** 53),
    5e-324,
    '',
    [],
    {},
    [null],
    [[]],
  ];
  if (stream.uniform() < 0.4) return pick(words, stream);
  if (stream.uniform() < 0.1) return 'x'.repeat(stream.integer(3000));
  if (stream.uniform() < 0.1) return `${rawMark}${pick(['1e999', '-1e999', '123456789012345678901234567890'], stream)}`;
  return structuredClone(pick(others as unknown[], stream));
}

/** Deeply nested JSON. */
function nested(stream: RandomStream): string {
  const depth = pick([10, 100, 1000, 2500], stream);
  return stream.uniform() < 0.5
    ? `${'['.repeat(depth)}${']'.repeat(depth)}`
    : `${'{"a":'.repeat(depth / 2)}0${'}'.repeat(depth / 2)}`;
}

/** Lines of `key: value` with changed values, keys, lines or indentation. */
function yamlMutated(input: Buffer, corpus: readonly Buffer[], stream: RandomStream): Buffer {
  const lines = input.toString('utf8').split('\n');
  for (let times = 1 + stream.integer(4); times > 0; times--) {
    const at = stream.integer(lines.length);
    const [, indent, key, , value] = /^(\s*(?:- )*)([^:]*)(:\s?)?(.*)$/s.exec(lines[at]) ?? ['', '', '', '', ''];
    const strangeValue = [
      () => pick(words, stream),
      () => JSON.stringify(strange(stream)),
      () => `\${${pick(lines, stream).split(':')[0].trim()}}`,
      () => `{${pick(words, stream)}: ${pick(words, stream)}}`,
      () => nested(stream),
      () => `&x ${value}`,
      () => '*x',
      () =>
        `!!${pick(['int', 'float', 'str', 'binary', 'set', 'omap', 'timestamp', 'null', 'merge'], stream)} ${value}`,
      () => (stream.uniform() < 0.5 ? '|' : '>-'),
    ];
    const change = [
      () => `${indent}${key}: ${pick(strangeValue, stream)()}`,
      () => `${indent}${key}: ${pick(strangeValue, stream)()}`,
      () => `${indent}${pick(words, stream)}: ${value}`,
      () => `${indent}? ${key}\n${indent}: ${value}`,
      () => `${indent}<<: ${pick(['*x', '[*x, *x]', '{a: 1}', 'null', '[[[]]]'], stream)}`,
      () => `${' '.repeat(stream.integer(8))}${lines[at].trimStart()}`,
      () => `${lines[at]}\n${pick(pick(corpus, stream).toString('utf8').split('\n'), stream)}`,
      () => pick(openers, stream).repeat(1 + stream.integer(400)),
    ];
    lines[at] = pick(change, stream)();
  }
  return Buffer.from(lines.join('\n')).subarray(0, mostBytes);
}
