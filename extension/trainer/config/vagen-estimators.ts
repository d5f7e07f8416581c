// VAGEN's names of advantage estimators. Here they are `gae` or `grpo` with further settings, which the names set:
// `masked_gae`, `bi_level_gae`, `turn_wise_gae` and `masked_grpo` of VAGEN's first version, `no_concat_gae` and
// `no_concat_gae_last` of its present one.
import { nodeAt, type MapNode, type Scalar, type Tree } from './yaml-tree';

const estimatorKey = 'algorithm.adv_estimator';

interface Meaning {
  estimator: 'gae' | 'grpo';
  /** Values of further keys; `$<key>` is the value of another key. */
  settings: Readonly<Record<string, Scalar>>;
}

const overTurns = (token: 'first' | 'last'): Record<string, Scalar> => ({
  'workbench.turn_gae': token,
  'agent_proxy.use_turn_scores': true,
});
/** `no_concat_gae` discounts turns by `gamma`. */
const discounted = { 'algorithm.high_level_gamma': '$algorithm.gamma' };

const meanings: Readonly<Record<string, Meaning>> = {
  masked_gae: { estimator: 'gae', settings: {} },
  masked_grpo: { estimator: 'grpo', settings: {} },
  bi_level_gae: {
    estimator: 'gae',
    settings: { 'algorithm.bi_level_gae': true, 'agent_proxy.use_turn_scores': true, 'workbench.turn_value': 'start' },
  },
  turn_wise_gae: { estimator: 'gae', settings: overTurns('last') },
  no_concat_gae: { estimator: 'gae', settings: { ...overTurns('first'), ...discounted } },
  no_concat_gae_last: { estimator: 'gae', settings: { ...overTurns('last'), ...discounted } },
};

/** VAGEN's names. */
export const vagenEstimators: readonly string[] = Object.keys(meanings);

/** Returns the tree with VAGEN's name of an estimator replaced by what it stands for; other trees as they are. */
export function withoutVagenNames(root: MapNode): MapNode {
  const named = nodeAt(root, estimatorKey.split('.'));
  if (named?.kind !== 'scalar' || typeof named.value !== 'string' || !Object.hasOwn(meanings, named.value)) return root;
  const { estimator, settings } = meanings[named.value];
  let changed = withValue(root, estimatorKey.split('.'), { ...named, value: estimator });
  for (const [key, value] of Object.entries(settings)) {
    const other =
      typeof value === 'string' && value.startsWith('$') ? nodeAt(root, value.slice(1).split('.')) : undefined;
    const given: Scalar = other?.kind === 'scalar' ? other.value : value;
    changed = withValue(changed, key.split('.'), { kind: 'scalar', value: given, location: named.location });
  }
  return changed;
}

/** Returns a copy of a map with a value at a path; a path through something that is no map has no effect. */
function withValue(map: MapNode, [name, ...rest]: readonly string[], value: Tree): MapNode {
  const child = map.entries.get(name);
  if (rest.length === 0) return { ...map, entries: new Map(map.entries).set(name, value) };
  if (child?.kind !== 'map') return map;
  return { ...map, entries: new Map(map.entries).set(name, withValue(child, rest, value)) };
}
