// Filter syntax of the run table: `frozen tag:paper state:finished lr>=0.001 best(val-env/lake/success)>0.8
// step:10..40 -name:test`. Terms are combined with "and"; a leading `-` negates a term. A word or quoted text without a
// column must occur in the run's name, id, configuration name, tags or notes. `column:text` finds a part of a text and
// tests numbers for equality; `column=value` tests equality; `column:a..b` tests an inclusive range with optional ends;
// `<`, `<=`, `>` and `>=` compare numbers. Texts are compared without regard to case. Pure functions.
import { nearest } from '../common/suggest';
import { tableFields, type Cell } from './table-columns';

type Operator = ':' | '=' | '<' | '<=' | '>' | '>=' | '..';

export interface RunTerm {
  /** Identifier of the column; null searches the texts of the run. */
  readonly column: string | null;
  readonly operator: Operator;
  /** Value in lower case. */
  readonly text: string;
  /** Inclusive bounds of a range; for other operators, both are the number that was written, NaN for a text. */
  readonly low: number;
  readonly high: number;
  readonly not: boolean;
}

export interface RunFilter {
  readonly terms: readonly RunTerm[];
  /** One sentence per term that could not be parsed; `terms` does not contain these terms. */
  readonly problems: readonly string[];
}

/** Alternative names of columns. */
const aliases: Readonly<Record<string, string>> = { tag: 'tags', note: 'notes', config: 'configuration' };

/** Parses a filter line; never throws. `resolve` finds the column with a name (table-columns.ts). */
export function parseRunFilter(line: string, resolve: (name: string) => string | null): RunFilter {
  const terms: RunTerm[] = [];
  const problems: string[] = [];
  // A term is a sequence of quoted texts and non-blank characters. An unterminated quote extends to the end.
  for (const [piece] of line.matchAll(/(?:"[^"]*(?:"|$)|[^\s"])+/g)) {
    const term = readTerm(piece, resolve);
    if (typeof term === 'string') problems.push(term);
    else if (term) terms.push(term);
  }
  return { terms, problems };
}

/**
 * Whether a run passes all terms. `texts` is the text in which words are searched for; `cell` returns the run's value in
 * a column.
 */
export function passesFilter(terms: readonly RunTerm[], texts: string, cell: (column: string) => Cell): boolean {
  const searched = texts.toLowerCase();
  return terms.every(term => {
    const holds = term.column === null ? searched.includes(term.text) : fits(term, cell(term.column));
    return holds !== term.not;
  });
}

/** Returns the identifiers of the columns that a filter needs, without duplicates. */
export const filteredColumns = ({ terms }: RunFilter): string[] => [
  ...new Set(terms.flatMap(({ column }) => column ?? [])),
];

function fits({ operator, text, low, high }: RunTerm, cell: Cell): boolean {
  if (cell === null) return false;
  if (operator === ':' || operator === '=') {
    if (typeof cell === 'number' && !Number.isNaN(low)) return cell === low;
    const value = String(cell).toLowerCase();
    return operator === ':' ? value.includes(text) : value === text;
  }
  if (typeof cell !== 'number') return false;
  switch (operator) {
    case '..':
      return cell >= low && cell <= high;
    case '<':
      return cell < low;
    case '<=':
      return cell <= low;
    case '>':
      return cell > low;
    case '>=':
      return cell >= low;
  }
}

/** Returns a term, an error message, or null for an incomplete term. */
function readTerm(piece: string, resolve: (name: string) => string | null): RunTerm | string | null {
  const not = piece.startsWith('-') && piece.length > 1;
  const body = not ? piece.slice(1) : piece;
  if (body === '-' || unquoted(body) === '') return null; // still being typed
  const match = /^((?:config|last|best|at)\(.+?\)|[A-Za-z_][\w./@-]*)(<=|>=|:|=|<|>)(.*)$/s.exec(body);
  if (!match)
    return { column: null, operator: ':', text: unquoted(body).toLowerCase(), low: Number.NaN, high: Number.NaN, not };
  const [, name, written, rest] = match;
  const operator = written as Operator;
  const column = resolve(aliases[name] ?? name);
  if (column === null) return unknownColumn(name);
  const value = unquoted(rest);
  if (value === '') return null; // still being typed
  const text = value.toLowerCase();
  const [, from, to] = /^(.*?)\.\.(.*)$/s.exec(value) ?? [];
  if (from !== undefined && operator === ':') {
    const low = from === '' ? -Infinity : readNumber(from);
    const high = to === '' ? Infinity : readNumber(to);
    if (!Number.isNaN(low) && !Number.isNaN(high)) return { column, operator: '..', text, low, high, not };
  }
  const number = readNumber(value);
  if (Number.isNaN(number) && operator !== ':' && operator !== '=')
    return `“${name}${operator}${value}” needs a number: write ${name}${operator}0.5, or ${name}:${value} to find a text`;
  return { column, operator, text, low: number, high: number, not };
}

function unknownColumn(name: string): string {
  const similar = name.length > 3 ? nearest(name, tableFields) : undefined; // short names resemble any field
  const remedy = similar === undefined ? 'write the complete key of a metric or setting' : `did you mean “${similar}”?`;
  return `“${name}” is not the name of exactly one column: ${remedy}`;
}

/** Parses a decimal number or a percentage; NaN for any other text. */
function readNumber(text: string): number {
  const plain = text.trim().replace('−', '-');
  const share = /^([+-]?(?:\d+\.?\d*|\.\d+))\s?%$/.exec(plain);
  if (share) return Number(share[1]) / 100;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : Number.NaN;
}

const unquoted = (text: string): string => text.replaceAll('"', '');
