// Trajectory filter: trains only on the best episodes of the groups that the rollout filter kept. RAGEN-2 compares this
// filter with the rollout filter. A common setting of the trajectory filter keeps a quarter of the successful episodes.
// This file selects episodes and computes metrics. Advantages are computed over complete groups, including the dropped
// episodes.
import { minimum } from '../common/lists';

/** Options under `workbench.trajectory_filter`. */
export interface TrajectoryFilter {
  strategy: 'none' | 'top';
  /** Share of all episodes to keep, 0…1. */
  value: number;
  metric: 'reward' | 'score';
  only_successful: boolean;
}

/** Per-episode values; all arrays have one entry per episode. */
export interface TrajectoryValues {
  groups: ArrayLike<number>;
  rewards: ArrayLike<number>;
  /** Sum of the episode's turn rewards and penalties, before reward normalisation. */
  scores: ArrayLike<number>;
  successes: ArrayLike<boolean>;
}

export interface FilteredTrajectories {
  /** 1 for each kept episode, in batch order. */
  kept: Uint8Array;
  /** `rollout/trajectory_filter_…` metrics; empty with strategy `none`. */
  metrics: Record<string, number>;
}

/**
 * Keeps the best episodes: the share `value` of all episodes, rounded down, but at least one. With `only_successful`,
 * unsuccessful episodes are never kept; fewer episodes may then remain, or none. Among equally good episodes, one
 * episode per group is taken, then a second one per group, and so on, in batch order. An episode whose value is NaN is
 * never kept.
 */
export function filterTrajectories(values: TrajectoryValues, filter: TrajectoryFilter): FilteredTrajectories {
  const count = values.groups.length;
  if (filter.strategy === 'none') return { kept: new Uint8Array(count).fill(1), metrics: {} };
  const measured = filter.metric === 'reward' ? values.rewards : values.scores;
  const all = Array.from({ length: count }, (_, episode) => episode);
  const candidates = all.filter(
    episode => !Number.isNaN(measured[episode]) && (!filter.only_successful || values.successes[episode]),
  );
  const wanted = Math.max(Math.trunc(filter.value * count), 1);
  const chosen = ranked(candidates, measured, values.groups).slice(0, wanted);
  const kept = new Uint8Array(count);
  for (const episode of chosen) kept[episode] = 1;
  return {
    kept,
    metrics: {
      'rollout/trajectory_filter_candidates': candidates.length,
      'rollout/trajectory_filter_kept_count': chosen.length,
      'rollout/trajectory_filter_kept_ratio': count > 0 ? chosen.length / count : 0,
      ...(chosen.length > 0 && {
        'rollout/trajectory_filter_least': minimum(chosen.map(episode => measured[episode])),
      }),
    },
  };
}

/**
 * Sorts the candidates, best first. Among equally good episodes, the first episodes of all groups precede the second
 * episodes of all groups, so that groups at the start of the batch are not preferred.
 */
function ranked(candidates: number[], measured: ArrayLike<number>, groups: ArrayLike<number>): number[] {
  const equals = new Map<string, number>();
  const places = new Map(
    candidates.map(episode => {
      const key = `${groups[episode]} ${measured[episode]}`;
      const place = equals.get(key) ?? 0;
      equals.set(key, place + 1);
      return [episode, place];
    }),
  );
  return candidates.toSorted((a, b) => measured[b] - measured[a] || places.get(a)! - places.get(b)! || a - b);
}
