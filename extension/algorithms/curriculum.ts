// Curriculum over environment tags (workbench.curriculum). Each tag is in a pool by the success rate of its training
// episodes: easy, normal or hard. A step plays more groups of the tags in the pool normal, because groups that always or
// never succeed have equal scores and carry no signal. A tag leaves a pool only after its rate has moved back by
// `hysteresis`, so that it does not alternate between two pools. Follows the difficulty pools of prime-rl, which sorts
// single problems; here a tag is an environment with its configuration, such as a board size.

import { maximum } from '../common/lists';

export type Pool = 'hard' | 'normal' | 'easy';

/** Options under `workbench.curriculum`; rates are 0…1. */
export interface CurriculumOptions {
  /** A tag becomes easy at this success rate or above. */
  easy_above: number;
  /** A tag becomes hard at this success rate or below. */
  hard_below: number;
  /** How far the rate must move back over the limit before the tag is normal again. */
  hysteresis: number;
  /** Weight of the earlier steps in the moving average of the rate, 0…1. */
  decay: number;
  /** Share of the groups of a tag in these pools, relative to the pool normal; 0 leaves one group. */
  easy_weight: number;
  hard_weight: number;
}

/** Moving average of a tag's success rate, and the tag's pool. */
export type TagDifficulty = { success: number; pool: Pool };

/** The tags that have been played, stored in checkpoints. A tag that is missing is in the pool normal. */
export type CurriculumState = Readonly<Record<string, TagDifficulty>>;

export const nothingPlayed: CurriculumState = {};

/** Returns a tag's difficulty; undefined if the tag has not been played. */
export const difficultyOf = (state: CurriculumState, tag: string): TagDifficulty | undefined =>
  Object.hasOwn(state, tag) ? state[tag] : undefined; // a tag may have the name of a property of all objects

/** A tag that has moved to another pool. */
export interface PoolMove {
  tag: string;
  from: Pool;
  to: Pool;
  success: number;
}

/**
 * Returns the state after a step, and the tags that have moved.
 * @param episodes tag and success of each training episode of the step that did not fail
 */
export function afterEpisodes(
  state: CurriculumState,
  episodes: readonly { tag: string; success: boolean }[],
  options: CurriculumOptions,
): { state: CurriculumState; moves: PoolMove[] } {
  const counts = new Map<string, { played: number; succeeded: number }>();
  for (const { tag, success } of episodes) {
    const { played, succeeded } = counts.get(tag) ?? { played: 0, succeeded: 0 };
    counts.set(tag, { played: played + 1, succeeded: succeeded + Number(success) });
  }
  const next: Record<string, TagDifficulty> = { ...state };
  const moves: PoolMove[] = [];
  for (const [tag, { played, succeeded }] of counts) {
    const rate = succeeded / played;
    const before = difficultyOf(state, tag);
    const success = before ? options.decay * before.success + (1 - options.decay) * rate : rate;
    const from = before?.pool ?? 'normal';
    const to = poolOf(from, success, options);
    next[tag] = { success, pool: to };
    if (to !== from) moves.push({ tag, from, to, success });
  }
  return { state: next, moves };
}

/** Largest rounding error of a difference between two rates. */
const rounding = 1e-9;

function poolOf(pool: Pool, success: number, { easy_above, hard_below, hysteresis }: CurriculumOptions): Pool {
  if (success >= easy_above) return 'easy';
  if (success <= hard_below) return 'hard';
  const isNear = (limit: number) => Math.abs(success - limit) <= hysteresis + rounding;
  if (pool === 'easy' && isNear(easy_above)) return 'easy';
  if (pool === 'hard' && isNear(hard_below)) return 'hard';
  return 'normal';
}

/**
 * Divides the groups of a step among the tags: in proportion to the configured numbers `counts`, each multiplied by the
 * weight of its tag's pool. The sum stays the same, and each configured tag keeps at least one group, because its rate
 * must still be measured. Remaining groups go to the tags with the largest fractions, the first of equal ones.
 * @param counts configured groups per tag, in the order of `tags`
 */
export function mixedGroups(
  tags: readonly string[],
  counts: readonly number[],
  state: CurriculumState,
  options: CurriculumOptions,
): number[] {
  const weights = { normal: 1, easy: options.easy_weight, hard: options.hard_weight };
  const shares = counts.map((count, i) => count * weights[difficultyOf(state, tags[i])?.pool ?? 'normal']);
  const total = sum(counts);
  const all = sum(shares);
  if (all === 0) return [...counts];
  const quotas = shares.map(share => (share / all) * total);
  const groups = quotas.map((quota, i) => (counts[i] === 0 ? 0 : Math.max(1, Math.floor(quota))));
  for (let left = total - sum(groups); left !== 0; left -= Math.sign(left)) {
    const change = Math.sign(left);
    const mayChange = (i: number): boolean => counts[i] > 0 && (change > 0 || groups[i] > 1);
    const need = groups.map((count, i) => (mayChange(i) ? change * (quotas[i] - count) : -Infinity));
    groups[need.indexOf(maximum(need))] += change;
  }
  return groups;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
