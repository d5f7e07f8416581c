// YAML as every part of the product reads it: by the `yaml` library, behind a bound. The library's parser calls itself for each level of
// nesting and takes time that grows with the square of some of them, so that a text of a few KB could exhaust its stack; a text that may be
// nested deeper than any configuration is refused before. Levels are counted from above, without parsing: indents and indicators of the lines
// that lead to a place, and open brackets. Texts that hold more than so many of them are no configuration either. Nor is one with so many
// mistakes, or one of more than a megabyte. Double keys are looked for here, in time that grows with their number: the library's check takes
// its square.
import { Composer, isAlias, isCollection, isScalar, Parser, visit, YAMLParseError } from 'yaml';
import type { Alias, CST, Document, DocumentOptions, Node, ParseOptions, SchemaOptions, YAMLMap } from 'yaml';
import { appendAll } from './lists';

/** Bytes of a text; a longer one is not read. */
export const mostYamlBytes = 2 ** 20;
/** Aliases of a text. */
const mostAliases = 1000;
/** Levels of nesting. */
export const mostLevels = 100;
/** Mistakes after which a text is read no further: each byte of one that is no YAML may be another. */
const mostMistakes = 100;

type Options = ParseOptions & DocumentOptions & SchemaOptions;

/** The document of a text; one that is too long or nested too deep has an error there and no contents. */
export function yamlDocument(text: string, options: Options): Document.Parsed {
  const refused = refusalOf(text);
  const document = firstDocument(refused ? '' : text, options);
  if (refused) document.errors.push(new YAMLParseError([refused.at, refused.at + 1], 'UNEXPECTED_TOKEN', refused.sentence)); // prettier-ignore
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
    return { at: 0, sentence: `it has more than ${mostYamlBytes} characters: split it into files` };
  const at = tooDeepAt(text);
  return at === undefined ? undefined : { at, sentence: `it is nested more than ${mostLevels} levels deep: write it flatter` }; // prettier-ignore
}

/** Keys that a map has already, as the library tells them; its own check compares each key with all before it. */
function doubleKeys({ items }: YAMLMap): YAMLParseError[] {
  const seen = new Set<unknown>();
  return items.flatMap(({ key }) => {
    if (!isScalar(key)) return [];
    if (seen.size !== seen.add(key.value).size) return [];
    const at = key.range?.[0] ?? 0;
    return [new YAMLParseError([at, at + 1], 'DUPLICATE_KEY', 'Map keys must be unique')];
  });
}

type Tell = (source: unknown, code: string, message: string, warning?: boolean) => void;

/** As the library's parseDocument, which cannot be stopped: its composer tells each mistake to `onError`, and keeps it in `errors`. */
function firstDocument(text: string, options: Options): Document.Parsed {
  const composer = new Composer({ ...options, prettyErrors: false, uniqueKeys: false });
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

/** As plain data, each is looked for among all anchors. */
const tooManyAliases = (at: number): YAMLParseError =>
  new YAMLParseError([at, at + 1], 'UNEXPECTED_TOKEN', `it has more than ${mostAliases} aliases: write them out`);

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

/** What each alias of a document stands for, found in one pass: the library's own look-up goes through the document for each. */
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
