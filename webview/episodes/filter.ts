// The filter line of the Episodes page: `success:false return<0 text:"stuck" step:40..60 group:3 kept:false -tag:lake`.
// Terms are joined by "and"; `-` in front turns a term around. `field:value` or `field=value` is equality, `field:a..b` an inclusive
// range (either end may be left out), `<`, `<=`, `>`, `>=` compare; words and quoted texts without a field are `text:`.
// `tag:`, `id:` and `text:` look for a part, without regard to case. Pure: knows rows and, for `text:`, what was read of an episode.
import type { EpisodeRow } from '../../extension/protocol/pages';

export type NumberField = 'return' | 'score' | 'advantage' | 'turns' | 'tokens' | 'step' | 'group' | 'member';
export type FlagField = 'success' | 'kept';
export type TextField = 'tag' | 'id' | 'mode' | 'text';

export type Term =
  | { kind: 'number'; field: NumberField; low: number; high: number; openLow: boolean; openHigh: boolean; not: boolean }
  | { kind: 'flag'; field: FlagField; value: boolean; not: boolean }
  | { kind: 'text'; field: TextField; value: string; not: boolean };

export interface Filter {
  terms: Term[];
  /** What could not be understood, one sentence each; those pieces are left out of `terms`. */
  problems: string[];
}

const numbers: readonly string[] = [
  'return',
  'score',
  'advantage',
  'turns',
  'tokens',
  'step',
  'group',
  'member',
] satisfies NumberField[];
const flags: readonly string[] = ['success', 'kept'] satisfies FlagField[];
const texts: readonly string[] = ['tag', 'id', 'mode', 'text'] satisfies TextField[];
const fields = [...flags, ...numbers, ...texts];

const isNumberField = (field: string): field is NumberField => numbers.includes(field);
const isFlagField = (field: string): field is FlagField => flags.includes(field);
const isTextField = (field: string): field is TextField => texts.includes(field);

/** Reads a filter line; never throws. */
export function parseFilter(line: string): Filter {
  const filter: Filter = { terms: [], problems: [] };
  // A term is a run of quoted texts and other characters that are not blank; a quote without its end takes the rest.
  for (const [piece] of line.matchAll(/(?:"[^"]*(?:"|$)|[^\s"])+/g)) {
    const term = readTerm(piece);
    if (typeof term === 'string') filter.problems.push(term);
    else if (term) filter.terms.push(term);
  }
  return filter;
}

/** The part of a filter that a row alone decides: all terms but `text:`. */
export function rowMatches(terms: readonly Term[], row: EpisodeRow): boolean {
  return terms.every(term => isTextTerm(term) || holds(term, row) !== term.not);
}

/** Whether all `text:` terms hold. `content` is everything that was read of the episode. */
export function textMatches(terms: readonly Term[], row: EpisodeRow, content: string): boolean {
  const haystack = `${row.id}\n${row.tag}\n${content}`.toLowerCase();
  return terms.every(term => !isTextTerm(term) || haystack.includes(term.value.toLowerCase()) !== term.not);
}

/** Whether the filter needs the episodes' texts. */
export const needsText = (terms: readonly Term[]): boolean => terms.some(isTextTerm);

/** Whether a step may hold matching rows; undefined when the filter says nothing of steps. */
export function stepFilter(terms: readonly Term[]): ((step: number) => boolean) | undefined {
  const steps = terms.filter(term => term.kind === 'number' && term.field === 'step');
  if (steps.length === 0) return undefined;
  return step => steps.every(term => term.kind === 'number' && within(term, step) !== term.not);
}

const isTextTerm = (term: Term): term is Term & { kind: 'text' } => term.kind === 'text' && term.field === 'text';

function holds(term: Term, row: EpisodeRow): boolean {
  switch (term.kind) {
    case 'flag':
      return row[term.field] === term.value;
    case 'number':
      return within(term, numberOf(term.field, row));
    case 'text':
      if (term.field === 'mode') return row.mode === term.value.toLowerCase();
      return term.field !== 'text' && row[term.field].toLowerCase().includes(term.value.toLowerCase());
  }
}

function numberOf(field: NumberField, row: EpisodeRow): number {
  switch (field) {
    case 'return':
      return row.reward ?? row.score;
    case 'group':
      return row.group_id;
    case 'advantage':
      return row.advantage ?? Number.NaN;
    default:
      return row[field];
  }
}

/** NaN, a value that the row has not, is within nothing. */
function within({ low, high, openLow, openHigh }: Term & { kind: 'number' }, value: number): boolean {
  return (openLow ? value > low : value >= low) && (openHigh ? value < high : value <= high);
}

/** A term, a sentence about what is wrong, or null for nothing. */
function readTerm(piece: string): Term | string | null {
  if (piece === '-') return null; // being typed
  const not = piece.startsWith('-') && piece.length > 1 && !/^-\.?\d/.test(piece);
  const body = not ? piece.slice(1) : piece;
  const match = /^([a-zA-Z_]+)(<=|>=|:|=|<|>)(.*)$/s.exec(body);
  if (!match) {
    const value = unquoted(body);
    return value === '' ? null : { kind: 'text', field: 'text', value, not };
  }
  const [, name, operator, rest] = match;
  const field = name.toLowerCase();
  const value = unquoted(rest);
  if (value === '') return null; // being typed
  if (isFlagField(field)) {
    const flag = { true: true, yes: true, false: false, no: false }[value.toLowerCase()];
    if (flag === undefined || !':='.includes(operator)) return `${field} is true or false, not “${value}”`;
    return { kind: 'flag', field, value: flag, not };
  }
  if (isNumberField(field)) return readRange(field, operator, value, not);
  if (isTextField(field)) {
    if (!':='.includes(operator)) return `${field} is a text: write ${field}:${rest}`;
    if (field === 'mode' && !['train', 'val'].includes(value.toLowerCase()))
      return `mode is train or val, not “${value}”`;
    return { kind: 'text', field, value, not };
  }
  return `“${name}” is no field: use ${fields.slice(0, -1).join(', ')} or text`;
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
  const wrong = `${field} needs a number or a range as 1..5, not “${value}”`;
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

/** A decimal number, also with the proper minus sign that the page shows. NaN for all else. */
function readNumber(text: string): number {
  const plain = text.replace('−', '-');
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : Number.NaN;
}

/** Without its quotation marks, wherever they stand. */
const unquoted = (text: string) => text.replaceAll('"', '');
