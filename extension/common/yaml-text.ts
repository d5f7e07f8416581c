// Bounded YAML parsing with the `yaml` library. The library's parser is recursive, and its time grows quadratically
// with the nesting depth. A text of a few KB could therefore overflow the stack. This file rejects texts that are
// nested too deeply, are larger than a megabyte, or have too many aliases or errors. An upper bound of the nesting is
// computed without parsing, from indentation and open brackets. Duplicate keys are detected in linear time, because the
// library's check is quadratic.
import { Composer, isAlias, isCollection, isScalar, Parser, visit, YAMLParseError } from 'yaml';
import type { Alias, CST, Document, DocumentOptions, Node, ParseOptions, SchemaOptions, YAMLMap } from 'yaml';
import { appendAll } from './lists';

/** Maximum characters of a text. */
export const mostYamlBytes = 2 ** 20;
/** Maximum aliases in a text. */
const mostAliases = 1000;
/** Maximum levels of nesting. */
export const mostLevels = 100;
/** Maximum errors before parsing stops; in a text that is not YAML, every byte may be an error. */
const mostMistakes = 100;

type Options = ParseOptions & DocumentOptions & SchemaOptions;

/** Parses a text. For a text that is too long or nested too deeply, returns an empty document with an error. */
export function yamlDocument(text: string, options: Options): Document.Parsed {
  const refused = refusalOf(text);
  const document = firstDocument(refused ? '' : text, options);
  if (refused)
    document.errors.push(new YAMLParseError([refused.at, refused.at + 1], 'UNEXPECTED_TOKEN', refused.sentence));
  const doubled: YAMLParseError[] = [];
  let aliases = 0;
  visit(document, {
    Map(_, map) {
      appendAll(doubled, doubleKeys(map));
    },
    Alias(_, alias) {
      if (++aliases === mostAliases + 1) document.errors.push(tooManyAliases(alias.range?.[0] ?? 0));
    },
    Pair(_, pair) {
      if (!isCollection(pair.key)) return;
      document.errors.push(noKey(pair.key.range?.[0] ?? 0));
      pair.key = null;
    },
  });
  if (doubled.length > 0) {
    appendAll(document.errors, doubled.slice(0, mostMistakes));
    document.errors.sort((a, b) => a.pos[0] - b.pos[0]);
  }
  document.errors.splice(mostMistakes);
  return document;
}

function refusalOf(text: string): { at: number; sentence: string } | undefined {
  if (text.length > mostYamlBytes)
    return { at: 0, sentence: `the text has more than ${mostYamlBytes} characters: split the text into several files` };
  const at = tooDeepAt(text);
  return at === undefined
    ? undefined
    : { at, sentence: `the text is nested more than ${mostLevels} levels deep: reduce the nesting` };
}

/**
 * Returns errors for duplicate keys, in the library's format. The library's check would compare each key with all
 * earlier keys.
 */
function doubleKeys({ items }: YAMLMap): YAMLParseError[] {
  const seen = new Set<unknown>();
  return items.flatMap(({ key }) => {
    if (!isScalar(key)) return [];
    if (seen.size !== seen.add(key.value).size) return [];
    const at = key.range?.[0] ?? 0;
    return [new YAMLParseError([at, at + 1], 'DUPLICATE_KEY', 'Map keys must be unique')];
  });
}

type OnError = (source: unknown, code: string, message: string, warning?: boolean) => void;

/**
 * Parses like the library's parseDocument, but stops at `mostMistakes` errors. To count the errors, this function wraps
 * `onError`, the function with which the library's composer adds each error to its list `errors`.
 */
function firstDocument(text: string, options: Options): Document.Parsed {
  const composer = new Composer({ ...options, prettyErrors: false, uniqueKeys: false });
  const onError = composer['onError'] as OnError;
  let mistakes = 0;
  composer['onError'] = (...[source, code, message, warning]: Parameters<OnError>) => {
    onError(source, code, message, warning);
    if (!warning && ++mistakes > mostMistakes) throw new TooManyMistakes();
  };
  const tokens = untilTooWrong(new Parser(options.lineCounter?.addNewLine).parse(text));
  let first: Document.Parsed | undefined;
  try {
    for (const document of composer.compose(tokens, true, text.length)) {
      first ??= document;
      if (document === first || options.logLevel === 'silent') continue;
      const sentence = 'a second document starts here: keep only one document';
      first.errors.push(new YAMLParseError([document.range[0], document.range[1]], 'MULTIPLE_DOCS', sentence));
      break;
    }
    return first!; // `true` forces a document even for an empty text
  } catch (error) {
    if (!(error instanceof TooManyMistakes)) throw error;
    const empty = firstDocument('', {});
    appendAll(empty.errors, composer['errors'] as YAMLParseError[]);
    return empty;
  }
}

class TooManyMistakes extends Error {}

/** Yields the parser's tokens until it has yielded `mostMistakes` error tokens. */
function* untilTooWrong(tokens: Iterable<CST.Token>): Generator<CST.Token> {
  let mistakes = 0;
  for (const token of tokens) {
    if (token.type === 'error' && ++mistakes > mostMistakes) return;
    yield token;
  }
}

/**
 * Returns the error for too many aliases. The number of aliases is bounded, because the library searches all anchors
 * for each alias.
 */
const tooManyAliases = (at: number): YAMLParseError =>
  new YAMLParseError(
    [at, at + 1],
    'UNEXPECTED_TOKEN',
    `the text has more than ${mostAliases} aliases: replace some aliases with their values`,
  );

/**
 * Returns the error for a key that is a collection. The library converts such a key to a string recursively, and the
 * length of the string doubles with each level of nesting.
 */
const noKey = (at: number): YAMLParseError =>
  new YAMLParseError([at, at + 1], 'UNEXPECTED_TOKEN', 'a map or list cannot be a key: use a string');

/**
 * Returns the value of a text as plain data.
 * @throws Error with the first mistake
 */
export function yamlValue(text: string): unknown {
  const document = yamlDocument(text, { prettyErrors: false, logLevel: 'silent' });
  if (document.errors.length > 0) throw document.errors[0];
  return document.toJS({ maxAliasCount: 100 });
}

/**
 * Returns the target of each alias of a document, found in one pass. The library's look-up would traverse the document
 * once per alias.
 */
export function aliasTargets(document: Document.Parsed): Map<Alias, Node> {
  const anchors = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node(_, node) {
      if (!isAlias(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
      const target = isAlias(node) ? anchors.get(node.source) : undefined;
      if (isAlias(node) && target) targets.set(node, target);
    },
  });
  return targets;
}

/** Returns the first offset at which the nesting may exceed `mostLevels`; undefined if there is none. */
function tooDeepAt(text: string): number | undefined {
  /** Columns at which the enclosing collections start. */
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
    let begins = true; // true while the line contains only indicators
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
