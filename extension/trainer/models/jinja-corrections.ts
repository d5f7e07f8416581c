// Where @huggingface/jinja departs from Python in ways that chat templates notice: its strip, lstrip and rstrip overlook which
// characters are to go (Qwen3's template keeps the blanks of an answer and drops its newlines), its white space is JavaScript's, and
// its strftime_now tells the present in the machine's time zone. A parsed template is made to call the functions of this file instead.
import type { Template } from '@huggingface/jinja';

type Node = Record<string, unknown> & { type: string };
/** Template functions that take the place of the library's, by the name they are called by in templates. */
const names = {
  strip: 'py_strip',
  lstrip: 'py_lstrip',
  rstrip: 'py_rstrip',
  trim: 'py_trim',
  strftime_now: 'py_strftime_now',
};

/** Makes the template call `templateFunctions`, in place. */
export function correctTemplate(template: Template): void {
  template.parsed = corrected(template.parsed) as Template['parsed'];
}

/** What a corrected template needs among its variables. `day`, in UTC, is what strftime_now tells. */
export function templateFunctions(day: Date): Record<string, (...args: never[]) => unknown> {
  return {
    [names.strip]: (text: unknown, chars?: string | null) => strip(method(text, 'strip'), chars, true, true),
    [names.lstrip]: (text: unknown, chars?: string | null) => strip(method(text, 'lstrip'), chars, true, false),
    [names.rstrip]: (text: unknown, chars?: string | null) => strip(method(text, 'rstrip'), chars, false, true),
    [names.trim]: (value: unknown, chars?: string | null) => strip(asText(value), chars, true, true),
    [names.strftime_now]: (format: string) => strftime(day, format),
  };
}

/** The node with its parts, calls of the methods and filters above replaced by calls of their functions. */
function corrected(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(corrected);
  if (part instanceof Map) return new Map([...part].map(([key, value]) => [corrected(key), corrected(value)]));
  if (!isNode(part)) return part;
  for (const [key, value] of Object.entries(part)) part[key] = corrected(value);
  if (isCalled(part, 'strftime_now')) return { ...part, value: names.strftime_now };
  if (part.type === 'CallExpression' && isNode(part.callee) && part.callee.type === 'MemberExpression') {
    const { object, property } = part.callee;
    for (const name of ['strip', 'lstrip', 'rstrip'] as const)
      if (isCalled(property, name)) return call(names[name], object, part.args);
  }
  if (part.type === 'FilterExpression') {
    const { operand, filter } = part;
    if (isCalled(filter, 'trim')) return call(names.trim, operand, []);
    if (isNode(filter) && isCalled(filter.callee, 'trim')) return call(names.trim, operand, filter.args);
  }
  return part;
}

const isNode = (part: unknown): part is Node => typeof part === 'object' && part !== null && 'type' in part;
const isCalled = (part: unknown, name: string): boolean =>
  isNode(part) && part.type === 'Identifier' && part.value === name;
const call = (name: string, subject: unknown, args: unknown): Node => ({
  type: 'CallExpression',
  callee: { type: 'Identifier', value: name },
  args: [subject, ...(args as unknown[])],
});

function method(text: unknown, name: string): string {
  if (typeof text !== 'string') throw new Error(`${name} is a method of text, not of ${asText(text)}`);
  return text;
}

/** As the library writes a value: nothing for none and what is undefined. */
const asText = (value: unknown): string => String(value ?? '');

/** What Python takes for white space. */
const isSpace = (c: string): boolean => /[\p{White_Space}\x1c-\x1f]/u.test(c);

/** Without any of `chars`, or else white space, at its left or right end. */
function strip(text: string, chars: string | null | undefined, left: boolean, right: boolean): string {
  const letters = [...text];
  const set = typeof chars === 'string' ? new Set(chars) : null;
  const goes = (c: string): boolean => (set ? set.has(c) : isSpace(c));
  let from = 0;
  let to = letters.length;
  while (left && from < to && goes(letters[from])) from++;
  while (right && to > from && goes(letters[to - 1])) to--;
  return letters.slice(from, to).join('');
}

/** Python's strftime in the C locale. */
function strftime(day: Date, format: string): string {
  const name = (part: Intl.DateTimeFormatOptions): string =>
    new Intl.DateTimeFormat('en-US', { ...part, timeZone: 'UTC' }).format(day);
  const two = (n: number): string => String(n).padStart(2, '0');
  const [year, month, date] = [day.getUTCFullYear(), day.getUTCMonth() + 1, day.getUTCDate()];
  const [hours, minutes, seconds] = [day.getUTCHours(), day.getUTCMinutes(), day.getUTCSeconds()].map(two);
  const parts: Record<string, string> = {
    Y: String(year),
    y: two(year % 100),
    m: two(month),
    '-m': String(month),
    d: two(date),
    '-d': String(date),
    e: String(date).padStart(2),
    B: name({ month: 'long' }),
    b: name({ month: 'short' }),
    A: name({ weekday: 'long' }),
    a: name({ weekday: 'short' }),
    H: hours,
    I: two(day.getUTCHours() % 12 || 12),
    M: minutes,
    S: seconds,
    p: day.getUTCHours() < 12 ? 'AM' : 'PM',
    F: `${year}-${two(month)}-${two(date)}`,
    T: `${hours}:${minutes}:${seconds}`,
    '%': '%',
  };
  return format.replace(/%(-?.)/gs, (directive, key: string) => {
    if (!(key in parts)) throw new Error(`strftime_now: ${directive} is not known`);
    return parts[key];
  });
}
