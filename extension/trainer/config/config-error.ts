// Configuration errors. An error lists all problems at once. Each problem is one sentence with key, value and remedy.
// If the value is in a YAML file, the problem also has line and column, so that an editor can underline the value.
import { isAbsolute, relative } from 'node:path';
import { UserError } from '../../common/user-error';

/**
 * Source of a value: a position in a YAML file (absolute path, 1-based line and column), or a command-line override.
 */
export interface Location {
  file?: string;
  line?: number;
  column?: number;
  override?: string;
}

/** One problem; `message` reads `config: <key> is <value>…: <remedy>`. */
export interface ConfigProblem extends Location {
  key: string;
  message: string;
}

const formatLocation = ({ file, line, column, override }: Location): string => {
  if (override !== undefined) return ` (override ${override})`;
  if (file === undefined) return '';
  const inside = relative(process.cwd(), file);
  const short = inside.startsWith('..') || isAbsolute(inside) ? file : inside;
  return ` (${[short, line, column].filter(part => part !== undefined).join(':')})`;
};

/** All problems of one configuration. `file`, `line`, `column` and `key` describe the first problem. */
export class ConfigError extends UserError {
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  readonly key: string;

  constructor(readonly problems: readonly ConfigProblem[]) {
    super(problems.map(problem => problem.message + formatLocation(problem)).join('\n'));
    const [first] = problems;
    this.key = first.key;
    this.file = first.file;
    this.line = first.line;
    this.column = first.column;
  }
}

/** Formats a value for a message: JSON, truncated to 80 characters. */
export function shown(value: unknown): string {
  const text = typeof value === 'number' || value === undefined ? String(value) : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
