// YAML as every part of the product reads it: by the `yaml` library, behind a bound. The library's parser calls itself for each level of
// nesting and takes time that grows with the square of some of them, so that a text of a few KB could exhaust its stack; a text that may be
// nested deeper than any configuration is refused before. Levels are counted from above, without parsing: indents and indicators of the lines
// that lead to a place, and open brackets. Texts that hold more than so many of them are no configuration either. Nor is one with so many
// mistakes: it is read no further.
import { Composer, isCollection, Parser, visit, YAMLParseError } from 'yaml';
import type { CST, Document, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml';
import { appendAll } from './lists';

/** Levels of nesting. */
export const mostLevels = 100;
/** Mistakes after which a text is read no further: each byte of one that is no YAML may be another. */
const mostMistakes = 100;

type Options = ParseOptions & DocumentOptions & SchemaOptions;

/** The document of a text; one that is nested too deep has an error there and no contents. */
export function yamlDocument(text: string, options: Options): Document.Parsed {
  const at = tooDeepAt(text);
  const document = firstDocument(at === undefined ? text : '', options);
  if (at !== undefined) {
    const sentence = `it is nested more than ${mostLevels} levels deep: write it flatter`;
    document.errors.push(new YAMLParseError([at, at + 1], 'UNEXPECTED_TOKEN', sentence));
  }
  visit(document, {
    Pair(_, pair) {
      if (!isCollection(pair.key)) return;
      document.errors.push(noKey(pair.key.range?.[0] ?? 0));
      pair.key = null;
    },
  });
  document.errors.splice(mostMistakes);
  return document;
}

type Tell = (source: unknown, code: string, message: string, warning?: boolean) => void;

/** As the library's parseDocument, which cannot be stopped: its composer tells each mistake to `onError`, and keeps it in `errors`. */
function firstDocument(text: string, options: Options): Document.Parsed {
  const composer = new Composer({ ...options, prettyErrors: false });
  const tell = composer['onError'] as Tell;
  let mistakes = 0;
  composer['onError'] = (...[source, code, message, warning]: Parameters<Tell>) => {
    tell(source, code, message, warning);
    if (!warning && ++mistakes > mostMistakes) throw new TooManyMistakes();
  };
  const tokens = untilTooWrong(new Parser(options.lineCounter?.addNewLine).parse(text));
  let first: Document.Parsed | undefined;
  try {
    for (const document of composer.compose(tokens, true, text.length)) {
      first ??= document;
      if (document === first || options.logLevel === 'silent') continue;
      const sentence = 'a second document begins here: keep one';
      first.errors.push(new YAMLParseError([document.range[0], document.range[1]], 'MULTIPLE_DOCS', sentence));
      break;
    }
    return first!; // forced, also of an empty text
  } catch (error) {
    if (!(error instanceof TooManyMistakes)) throw error;
    const empty = firstDocument('', {});
    appendAll(empty.errors, composer['errors'] as YAMLParseError[]);
    return empty;
  }
}

class TooManyMistakes extends Error {}

/** What the parser finds itself comes as tokens. */
function* untilTooWrong(tokens: Iterable<CST.Token>): Generator<CST.Token> {
  let mistakes = 0;
  for (const token of tokens) {
    if (token.type === 'error' && ++mistakes > mostMistakes) return;
    yield token;
  }
}

/** As plain data, the library writes such keys as texts in texts in texts: each level doubles the length. */
const noKey = (at: number): YAMLParseError =>
  new YAMLParseError([at, at + 1], 'UNEXPECTED_TOKEN', 'a map or a list is no key: use a plain word');

/**
 * The value of a text, as plain data.
 * @throws Error with the first mistake
 */
export function yamlValue(text: string): unknown {
  const document = yamlDocument(text, { prettyErrors: false, logLevel: 'silent' });
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS({ maxAliasCount: 100 });
}

/** Where nesting may be too deep; undefined where it is not. */
function tooDeepAt(text: string): number | undefined {
  /** Columns at which the collections around a place begin. */
  const columns: number[] = [];
  let open = 0;
  let at = 0;
  for (const line of text.split('\n')) {
    let column = 0;
    const enter = (): void => {
      while (columns.length > 0 && columns[columns.length - 1] >= column) columns.pop();
      columns.push(column);
    };
    while (line[column] === ' ' || line[column] === '\t') column++;
    if (column < line.length) enter();
    let begins = true; // nothing but indicators so far
    for (; column < line.length; column++) {
      const letter = line[column];
      if (letter === '[' || letter === '{') open++;
      else if ((letter === ']' || letter === '}') && open > 0) open--;
      else if (begins && '-?:'.includes(letter) && isBlank(line[column + 1])) enter();
      else if (!isBlank(letter)) begins = false;
      if (columns.length + open > mostLevels) return at + column;
    }
    at += line.length + 1;
  }
  return undefined;
}

const isBlank = (letter: string | undefined): boolean => letter === ' ' || letter === '\t' || letter === undefined;
