// Finds the key or value at a position in a YAML text, and whether a key or a value could be inserted at a position.
// Both lookups use the tree of the `yaml` library. For an insertion, a placeholder word is inserted at the position,
// and the placeholder's node is then looked up in the tree. The library's parser thus interprets block, flow and
// multi-line forms.
import { isMap, isPair, isScalar, isSeq, type Document, type Node, type Pair } from 'yaml';
import { yamlDocument } from '../../common/yaml-text';
import type { KeyPath } from './configuration-schema';

/** The key or value at a position. `path` is the path of the value, even if the position is in the value's key. */
export interface YamlLocation {
  path: KeyPath;
  part: 'key' | 'value';
  /** `from` and `to` are the start and end offsets of the key or value. */
  from: number;
  to: number;
  /** Text of the value, if it is a scalar. */
  text: string;
}

/**
 * What could be inserted at a position: a key of the map at `path`, or the value at `path`. For a list item, the last
 * part of `path` is the item's index.
 */
export interface YamlGap {
  path: KeyPath;
  part: 'key' | 'value';
  /** `from` and `to` are the start and end offsets of the existing word, which an insertion replaces. */
  from: number;
  to: number;
  /** Existing keys of the same map. */
  present: string[];
  /** Whether the position is inside brackets or braces. */
  flow: boolean;
}

type Visit = (node: Node, path: KeyPath, part: 'key' | 'value', above: Node | undefined) => void;

/** Calls `visit` with every scalar and collection of a document, keys before their values. */
function walkYaml(document: Document, visit: Visit): void {
  const go = (node: unknown, path: KeyPath, above: Node | undefined): void => {
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return;
    visit(node, path, 'value', above);
    if (isSeq(node))
      node.items.forEach((item, i) => (isPair(item) ? pair(item, [...path, i], node) : go(item, [...path, i], node)));
    if (isMap(node)) for (const item of node.items) pair(item, path, node);
  };
  const pair = ({ key, value }: Pair, path: KeyPath, above: Node): void => {
    if (!isScalar(key)) return;
    const inner = [...path, String(key.value)];
    visit(key, inner, 'key', above);
    go(value, inner, above);
  };
  go(document.contents, [], undefined);
}

/** Returns the node at `offset`, or undefined. */
export function locationAt(text: string, offset: number): YamlLocation | undefined {
  let found: YamlLocation | undefined;
  walkYaml(parsed(text), (node, path, part) => {
    const [from, to] = node.range ?? [0, 0];
    if (isScalar(node) && from <= offset && offset <= to && to > from)
      found = { path, part, from, to, text: part === 'value' ? String(node.value) : '' };
  });
  return found;
}

const word = /[\w./@-]/;
const standIn = 'zzStandIn';

/** Returns what could be inserted at `offset`, a key or a value; undefined in a comment or a multi-line string. */
export function gapAt(text: string, offset: number): YamlGap | undefined {
  let [from, to] = [offset, offset];
  while (from > 0 && word.test(text[from - 1])) from--;
  while (to < text.length && word.test(text[to])) to++;
  const before = text.slice(text.lastIndexOf('\n', from - 1) + 1, from);
  if (/(^|\s)#/.test(before) || from > offset) return undefined;
  const put = (inserted: string): { document: Document; gap: YamlGap | undefined } => {
    const document = parsed(`${text.slice(0, from)}${inserted}${text.slice(to)}`);
    return { document, gap: findStandIn(document, from, to) };
  };
  const plain = put(standIn);
  const startsLine = /^\s*(?:-\s+)*$/.test(before);
  if (!startsLine || (plain.gap && plain.document.errors.length === 0)) return plain.gap;
  return put(`${standIn}:`).gap ?? plain.gap;
}

function findStandIn(document: Document, from: number, to: number): YamlGap | undefined {
  let gap: YamlGap | undefined;
  walkYaml(document, (node, path, part, above) => {
    if (!isScalar(node) || node.value !== standIn) return;
    const flow = (isMap(above) || isSeq(above)) && above.flow === true;
    const present = isMap(above) && part === 'key' ? keysOf(above).filter(key => key !== standIn) : [];
    gap = { path: part === 'key' ? path.slice(0, -1) : path, part, from, to, present, flow };
  });
  return gap;
}

const keysOf = (map: { items: Pair[] }): string[] =>
  map.items.flatMap(({ key }) => (isScalar(key) ? String(key.value) : []));

const parsed = (text: string): Document => yamlDocument(text, { prettyErrors: false, logLevel: 'silent' });
