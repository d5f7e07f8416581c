// Resolves `${a.b}` in values to the value of the key a.b, after composition and overrides (OmegaConf's interpolation
// with absolute keys). A value that consists only of `${…}` is replaced by a copy of the referenced node, which may
// also be a map or a list. Inside longer text, the referenced value is inserted as text.
import type { ConfigProblem } from './config-error';
import { emptyMap, nodeAt } from './yaml-tree';
import type { MapNode, ScalarNode, Tree } from './yaml-tree';

const whole = /^\$\{([^{}$]*)\}$/;
const inside = /\$\{([^{}$]*)\}/g;
// Maximum length of a chain of references, and maximum size of a resolved value. Without a maximum size, nested
// references could expand exponentially and use up the memory.
const maxChain = 100;
const maxSize = 100_000;

/**
 * Replaces every interpolation in the tree. Unknown keys, cycles and resolvers (`${oc.env:…}`) are added to `problems`.
 */
export function interpolate(root: MapNode, problems: ConfigProblem[]): MapNode {
  const done = new Map<Tree, Tree>();
  const open = new Set<Tree>();
  /** Size of each resolved subtree: number of its nodes plus number of characters of its strings. */
  const sizes = new Map<Tree, number>();

  const lookUp = (reference: string, from: ScalarNode, path: string): Tree | undefined => {
    const complain = (sentence: string): undefined => {
      problems.push({
        key: path,
        message: `config: ${path} refers to \${${reference}}, ${sentence}`,
        ...from.location,
      });
      return undefined;
    };
    const key = reference.trim();
    if (!/^[\w-]+(\.[\w-]+)*$/.test(key))
      return complain('which is not a key: write the full key, like ${trainer.test_freq}');
    const target = nodeAt(root, key.split('.'));
    if (!target) return complain('which does not exist: correct the key');
    if (open.has(target)) return complain('which is a circular reference: give one of the keys a value');
    if (open.size > maxChain)
      return complain('which is reached through too many references: give one of the keys a value');
    const resolved = resolve(target, key);
    const size = sizes.get(resolved) ?? 1;
    if (size > maxSize)
      return complain('which expands to a value that is too large: replace the reference by a shorter value');
    const found = { ...resolved, origin: resolved.origin ?? key };
    sizes.set(found, size);
    return found;
  };

  const sizeOf = (node: Tree): number => {
    if (node.kind === 'scalar') return 1 + (typeof node.value === 'string' ? node.value.length : 0);
    let size = 1;
    for (const child of node.kind === 'list' ? node.items : node.entries.values()) size += sizes.get(child) ?? 1;
    return size;
  };

  const resolveScalar = (node: ScalarNode, path: string): Tree => {
    if (typeof node.value !== 'string' || !node.value.includes('${')) return node;
    const nothing: ScalarNode = { ...node, value: null };
    const single = whole.exec(node.value);
    if (single) {
      const found = lookUp(single[1], node, path);
      if (!found) return nothing;
      const taken = { ...found, keyLocation: node.keyLocation };
      sizes.set(taken, sizes.get(found) ?? 1);
      return taken;
    }
    let grown = 0;
    const text = node.value.replace(inside, (_, reference: string) => {
      if (grown > maxSize) return '';
      const found = lookUp(reference, node, path);
      grown += found ? (sizes.get(found) ?? 1) : 0;
      if (found && found.kind !== 'scalar')
        problems.push({
          key: path,
          message: `config: ${path} puts \${${reference}} into text, but ${reference} is a map or a list: refer to a single value`,
          ...node.location,
        });
      return found?.kind === 'scalar' ? String(found.value) : '';
    });
    return { ...node, value: text };
  };

  const resolve = (node: Tree, path: string): Tree => {
    const known = done.get(node);
    if (known) return known;
    open.add(node);
    const below = (key: string): string => (path ? `${path}.${key}` : key);
    let result: Tree;
    if (node.kind === 'scalar') result = resolveScalar(node, path);
    else if (node.kind === 'list')
      result = { ...node, items: node.items.map((item, i) => resolve(item, `${path}[${i}]`)) };
    else
      result = {
        ...node,
        entries: new Map([...node.entries].map(([key, child]) => [key, resolve(child, below(key))])),
      };
    open.delete(node);
    done.set(node, result);
    if (!sizes.has(result)) sizes.set(result, sizeOf(result));
    return result;
  };

  const resolved: MapNode = {
    ...root,
    entries: new Map([...root.entries].map(([key, child]) => [key, resolve(child, key)])),
  };
  if (sizeOf(resolved) <= 10 * maxSize) return resolved;
  problems.push({
    key: '',
    message:
      'config: the references expand to a configuration that is too large: replace some references by shorter values',
    ...root.location,
  });
  return emptyMap(root.location);
}
