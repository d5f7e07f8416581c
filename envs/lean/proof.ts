// A theorem as text for Lean and for the model: imports, preamble, statement, and the accepted tactics, each indented
// by two spaces.
import type { Script } from './lean-check';

export interface Theorem {
  imports: string;
  /** The lines between the imports and the statement: `open`, options and definitions. */
  preamble: string;
  statement: string;
  informal: string;
  /** Tactics that prove the theorem, if known. */
  proof?: string[];
}

/** Splits a theorem's Lean text into the imports, the preamble, and the statement with all lines after it. */
export function partsOf(formal: string): Pick<Theorem, 'imports' | 'preamble' | 'statement'> {
  const imports: string[] = [];
  const preamble: string[] = [];
  const statement: string[] = [];
  for (const line of formal.split('\n')) {
    if (statement.length > 0 || /^\s*(theorem|lemma|def|example|instance)/.test(line)) statement.push(line);
    else if (/^\s*import/.test(line)) imports.push(line);
    else preamble.push(line);
  }
  const [joinedImports, joinedPreamble, joinedStatement] = [imports, preamble, statement].map(lines =>
    lines.join('\n').trim(),
  );
  return { imports: joinedImports, preamble: joinedPreamble, statement: joinedStatement };
}

/**
 * Returns the script that applies these tactics. The header contains only imports, because servers cache the state
 * after the header. Other lines in `imports`, such as options, are moved into the body.
 */
export function scriptOf({ imports, preamble, statement }: Theorem, tactics: readonly string[]): Script {
  const lines = imports.trim().split('\n');
  const count = lines.findLastIndex(line => line.trim().startsWith('import')) + 1;
  const block = (text: string) => (text.trim() === '' ? '' : `${text.trim()}\n\n`);
  const header = lines.slice(0, count).map(line => `${line}\n`);
  const rest = lines.slice(count).map(line => `${line}\n`);
  const steps = tactics.filter(tactic => tactic.trim() !== '').map(tactic => `  ${tactic}`);
  const body = `${block(preamble)}${[statement, ...steps].join('\n')}\n`;
  return { header: header.join(''), body: `${rest.join('')}${imports.trim() === '' ? '' : '\n'}${body}` };
}

/** Returns the last `most` lines of the script, with line numbers. */
export function numberedLines({ header, body }: Script, most = 40): string[] {
  const lines = (header + body).trimEnd().split('\n');
  const first = Math.max(0, lines.length - most);
  const width = Math.max(3, String(lines.length).length);
  const shown = lines.slice(first).map((line, i) => `${String(first + i + 1).padStart(width)} | ${line}`);
  return first > 0 ? [`... (${first} earlier lines omitted)`, ...shown] : shown;
}

/** Breaks a text at spaces into lines of at most `width` characters. */
export function wrapped(text: string, width = 88): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(part => part !== '')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}
