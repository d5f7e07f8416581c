// Filter syntax of the Episodes page and of `ragen episodes`: `success:false score<0 text:"stuck" step:40..60 group:3
// kept:false -tag:lake`. Terms are combined with "and"; a leading `-` negates a term. `field:value` and `field=value`
// test equality. `field:a..b` tests an inclusive range; either end is optional. `<`, `<=`, `>` and `>=` compare values.
// Words and quoted texts without a field are `text:` terms. `tag:`, `id:` and `text:` match substrings, ignoring case.
// Pure functions. All terms except `text:` are evaluated on the columns. For `text:` terms, the extension host searches
// the episodes' texts. A new field also needs a column in episode-table.ts and episode-index-line.ts.
import { episodeId } from './episode-index-line';
import type { EpisodeTable, TableColumn } from './episode-table';

/** A `text:` term. */
export interface TextTerm {
  /** Substring to find in states, answers, final state or error, ignoring case. */
  value: string;
  not: boolean;
}

export type NumberField =
  'return' | 'score' | 'advantage' | 'turns' | 'tokens' | 'invalid' | 'step' | 'group' | 'member' | 'seed';
export type FlagField = 'success' | 'kept';
export type TextField = 'tag' | 'id' | 'mode' | 'text';

export type Term =
  | { kind: 'number'; field: NumberField; low: number; high: number; openLow: boolean; openHigh: boolean; not: boolean }
  | { kind: 'flag'; field: FlagField; value: boolean; not: boolean }
  | { kind: 'text'; field: TextField; value: string; not: boolean };

export interface Filter {
  terms: Term[];
  /** One sentence per term that could not be parsed; `terms` does not contain these terms. */
  problems: string[];
}

const numbers: readonly string[] = [
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
] satisfies NumberField[];
const flags: readonly string[] = ['success', 'kept'] satisfies FlagField[];
const texts: readonly string[] = ['tag', 'id', 'mode', 'text'] satisfies TextField[];
const fields = [...flags, ...numbers, ...texts];
/** Alternative field names. */
const aliases: Readonly<Record<string, string>> = { reward: 'return', length: 'tokens' };

const isNumberField = (field: string): field is NumberField => numbers.includes(field);
const isFlagField = (field: string): field is FlagField => flags.includes(field);
const isTextField = (field: string): field is TextField => texts.includes(field);

/** Parses a filter line; never throws. */
export function parseFilter(line: string): Filter {
  const filter: Filter = { terms: [], problems: [] };
  // A term is a sequence of quoted texts and non-blank characters. An unterminated quote extends to the end.
  for (const [piece] of line.matchAll(/(?:"[^"]*(?:"|$)|[^\s"])+/g)) {
    const term = readTerm(piece);
    if (typeof term === 'string') filter.problems.push(term);
    else if (term) filter.terms.push(term);
  }
  return filter;
}

/**
 * Returns a function that tests the row with a given number. The function ignores `text:` terms and returns whether the
 * row satisfies all other terms.
 */
export function rowTest(terms: readonly Term[], table: EpisodeTable): (row: number) => boolean {
  const tests = terms.filter(term => !isTextTerm(term)).map(term => ({ not: term.not, holds: termTest(term, table) }));
  return row => tests.every(({ not, holds }) => holds(row) !== not);
}

/** Returns the `text:` terms, which require the episodes' texts. */
export const textTerms = (terms: readonly Term[]): TextTerm[] =>
  terms.filter(isTextTerm).map(({ value, not }) => ({ value, not }));

/** Whether the filter has a `mode:` term, which selects training or validation. */
export const namesMode = (terms: readonly Term[]): boolean =>
  terms.some(term => term.kind === 'text' && term.field === 'mode');

const isTextTerm = (term: Term): term is Term & { kind: 'text' } => term.kind === 'text' && term.field === 'text';

/** Returns the table column of a field. */
const columnOf = (field: NumberField): TableColumn => (field === 'return' ? 'reward' : field);

function termTest(term: Term, table: EpisodeTable): (row: number) => boolean {
  switch (term.kind) {
    case 'flag': {
      const [column, value] = [table.column(term.field), Number(term.value)];
      const judged = table.column('judged');
      return row => column[row] === value && (term.field !== 'success' || judged[row] === 1);
    }
    case 'number': {
      const column = table.column(columnOf(term.field));
      return row => within(term, column[row]);
    }
    case 'text':
      return partTest(term.field, term.value.toLowerCase(), table);
  }
}

function partTest(field: TextField, part: string, table: EpisodeTable): (row: number) => boolean {
  const [step, mode, group, member, tag] = (['step', 'mode', 'group', 'member', 'tag'] as const).map(name =>
    table.column(name),
  );
  if (field === 'tag') {
    const holds = table.tags.map(name => name.toLowerCase().includes(part));
    return row => holds[tag[row]];
  }
  if (field === 'mode') return row => mode[row] === Number(part === 'val');
  return row =>
    episodeId({
      mode: mode[row] === 1 ? 'val' : 'train',
      step: step[row],
      group_id: group[row],
      member: member[row],
    }).includes(part);
}

/** Whether a value is in the range of a term; false for NaN (missing). */
function within({ low, high, openLow, openHigh }: Term & { kind: 'number' }, value: number): boolean {
  return (openLow ? value > low : value >= low) && (openHigh ? value < high : value <= high);
}

/** Returns a term, an error message, or null for an incomplete term. */
function readTerm(piece: string): Term | string | null {
  if (piece === '-') return null; // still being typed
  const not = piece.startsWith('-') && piece.length > 1 && !/^-\.?\d/.test(piece);
  const body = not ? piece.slice(1) : piece;
  const match = /^([a-zA-Z_]+)(<=|>=|:|=|<|>)(.*)$/s.exec(body);
  if (!match) {
    const value = unquoted(body);
    return value === '' ? null : { kind: 'text', field: 'text', value, not };
  }
  const [, name, operator, rest] = match;
  const written = name.toLowerCase();
  const field = aliases[written] ?? written;
  const value = unquoted(rest);
  if (value === '') return null; // still being typed
  if (isFlagField(field)) {
    const flag = { true: true, yes: true, false: false, no: false }[value.toLowerCase()];
    if (flag === undefined || !':='.includes(operator)) return `${field} is true or false, not “${value}”`;
    return { kind: 'flag', field, value: flag, not };
  }
  if (isNumberField(field)) return readRange(field, operator, value, not);
  if (isTextField(field)) {
    if (!':='.includes(operator)) return `${field} is a text, so “${operator}” does not apply: write ${field}:${rest}`;
    if (field === 'mode' && !['train', 'val'].includes(value.toLowerCase()))
      return `mode is train or val, not “${value}”`;
    return { kind: 'text', field, value, not };
  }
  return `“${name}” is not a field: use ${fields.slice(0, -1).join(', ')} or text`;
}

function readRange(field: NumberField, operator: string, value: string, not: boolean): Term | string {
  const range = /^(.*?)\.\.(.*)$/.exec(value);
  const whole = {
    kind: 'number',
    field,
    low: -Infinity,
    high: Infinity,
    openLow: false,
    openHigh: false,
    not,
  } as const;
  const wrong = `${field} needs a number or a range such as 1..5, not “${value}”`;
  if (range && ':='.includes(operator)) {
    const low = range[1] === '' ? -Infinity : readNumber(range[1]);
    const high = range[2] === '' ? Infinity : readNumber(range[2]);
    return Number.isNaN(low) || Number.isNaN(high) ? wrong : { ...whole, low, high };
  }
  const number = readNumber(value);
  if (Number.isNaN(number)) return wrong;
  switch (operator) {
    case '<':
    case '<=':
      return { ...whole, high: number, openHigh: operator === '<' };
    case '>':
    case '>=':
      return { ...whole, low: number, openLow: operator === '>' };
    default:
      return { ...whole, low: number, high: number };
  }
}

/** Parses a decimal number. Accepts the Unicode minus sign, because the page shows it. NaN for any other text. */
function readNumber(text: string): number {
  const plain = text.replace('−', '-');
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : Number.NaN;
}

/** Removes all quotation marks. */
const unquoted = (text: string) => text.replaceAll('"', '');
