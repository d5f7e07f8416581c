// Tree of a configuration during composition. Each node stores its location in the YAML source, so that an error found
// after merging refers to the right file. Invariants: keys are unique, `__proto__` never occurs, numbers are finite.
import { LineCounter, isAlias, isMap, isScalar, isSeq } from 'yaml';
import type { Node } from 'yaml';
import { aliasTargets, yamlDocument } from '../../common/yaml-text';
import type { ConfigProblem, Location } from './config-error';

export type Scalar = string | number | boolean | null;

interface Written {
  location: Location;
  /** Location of the node's key, for problems of the key. */
  keyLocation?: Location;
  /** Key from which the value was interpolated. Problems of the value are reported at this key. */
  origin?: string;
}
/** `source` is the number as written, such as 1e3. */
export type ScalarNode = Written & { kind: 'scalar'; value: Scalar; source?: string };
export type ListNode = Written & { kind: 'list'; items: Tree[] };
export type MapNode = Written & { kind: 'map'; entries: Map<string, Tree> };
export type Tree = ScalarNode | ListNode | MapNode;

const maxNodes = 20_000;
const maxDepth = 64;

export const emptyMap = (location: Location): MapNode => ({ kind: 'map', entries: new Map(), location });

/**
 * Parses one YAML 1.2 document into a tree. Problems (syntax, duplicate keys, non-finite numbers, cyclic or
 * exponentially expanding aliases) are added to `problems`. Returns null if the text could not be parsed.
 */
export function parseYaml(
  text: string,
  at: { file?: string; override?: string },
  problems: ConfigProblem[],
): Tree | null {
  const lines = new LineCounter();
  const locationAt = (offset: number | undefined): Location => {
    if (at.file === undefined || offset === undefined) return at;
    const { line, col } = lines.linePos(offset);
    return { file: at.file, line, column: col };
  };
  const complain = (offset: number | undefined, key: string, sentence: string): void => {
    problems.push({ key, message: `config: ${sentence}`, ...locationAt(offset) });
  };
  const document = yamlDocument(text, { lineCounter: lines, prettyErrors: false });
  for (const error of document.errors) complain(error.pos[0], '', `the YAML is not valid: ${firstLine(error.message)}`);
  if (document.errors.length > 0) return null;

  const targets = aliasTargets(document);
  let nodes = 0;
  let endless = false;
  const convert = (node: Node | null, path: string, depth: number): Tree => {
    const offset = node?.range?.[0];
    const location = locationAt(offset);
    nodes += 1;
    if (!endless && (nodes > maxNodes || depth > maxDepth)) {
      endless = true; // report once and stop, because cyclic aliases would recurse forever
      complain(
        offset,
        path,
        `${path} is nested too deeply, or its aliases expand without end: write plain values with less nesting`,
      );
    }
    if (endless) return { kind: 'scalar', value: null, location };
    if (isAlias(node)) return convert(targets.get(node) ?? null, path, depth + 1);
    if (isMap(node)) return convertMap(node, path, depth, location);
    if (isSeq(node)) {
      const items = node.items.map((item, index) => convert(item as Node | null, `${path}[${index}]`, depth + 1));
      return { kind: 'list', items, location };
    }
    const value = isScalar(node) ? node.value : null;
    if (typeof value === 'number' && !Number.isFinite(value)) {
      complain(offset, path, `${path} is ${value}: use a finite number`);
      return { kind: 'scalar', value: null, location };
    }
    const plain =
      value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    const source = typeof value === 'number' && isScalar(node) ? node.source : undefined;
    return { kind: 'scalar', value: plain ? value : String(value), location, ...(source !== undefined && { source }) };
  };
  const convertMap = (node: Node, path: string, depth: number, location: Location): Tree => {
    const map: MapNode = { kind: 'map', entries: new Map(), location };
    const inherited: MapNode[] = [];
    for (const pair of isMap(node) ? node.items : []) {
      const keyNode = pair.key as Node | null;
      const key = isScalar(keyNode) ? String(keyNode.value) : undefined;
      const keyOffset = keyNode?.range?.[0] ?? undefined;
      if (key === undefined || key === '__proto__') {
        complain(keyOffset, path, `${path || 'the file'} has a key that is not allowed: use a plain word`);
        continue;
      }
      const child = convert(pair.value as Node | null, path ? `${path}.${key}` : key, depth + 1);
      if (key === '<<') {
        for (const source of child.kind === 'list' ? child.items : [child])
          if (source.kind === 'map') inherited.push(source);
      } else {
        map.entries.set(key, { ...child, keyLocation: locationAt(keyOffset) });
      }
    }
    for (const source of inherited)
      for (const [key, child] of source.entries) if (!map.entries.has(key)) map.entries.set(key, child);
    return map;
  };
  return convert(document.contents, '', 0);
}

const firstLine = (text: string): string => text.split('\n', 1)[0];

/**
 * Returns `upper` merged over `lower`: maps are merged key by key; any other value of `upper` replaces the value of
 * `lower`. Neither argument is changed.
 */
export function merge(lower: Tree, upper: Tree): Tree {
  if (lower.kind !== 'map' || upper.kind !== 'map') return upper;
  const entries = new Map(lower.entries);
  for (const [key, child] of upper.entries) {
    const below = entries.get(key);
    entries.set(key, below ? merge(below, child) : child);
  }
  return { ...upper, entries };
}

/** Returns the node at a path such as ['a', 'b'] or ['a', 'list', 2], or undefined. */
export function nodeAt(tree: Tree, path: readonly PropertyKey[]): Tree | undefined {
  let node: Tree | undefined = tree;
  for (const part of path) {
    if (node?.kind === 'map') node = node.entries.get(String(part));
    else if (node?.kind === 'list') node = node.items[Number(part)];
    else return undefined;
  }
  return node;
}

/** Converts a tree to plain values, as in JSON. */
export function toPlain(tree: Tree): unknown {
  if (tree.kind === 'scalar') return tree.value;
  if (tree.kind === 'list') return tree.items.map(toPlain);
  return Object.fromEntries([...tree.entries].map(([key, child]) => [key, toPlain(child)]));
}
