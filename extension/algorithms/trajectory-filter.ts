// The trajectory filter: of the episodes in the groups that the rollout filter kept, only the best are trained on
// (RAGEN-2 compares filtering by trajectory with filtering by prompt; a quarter of the successful episodes is the
// common setting). Chooses episodes and measures; advantages are taken over whole groups, the episodes left out
// included.
import { minimum } from '../common/lists';

/** `workbench.trajectory_filter`. */
export interface TrajectoryFilter {
  strategy: 'none' | 'top';
  /** Share of the episodes that is kept. */
  value: number;
  metric: 'reward' | 'score';
  only_successful: boolean;
}

/** Per-episode values; all arrays have one entry an episode. */
export interface TrajectoryValues {
  groups: ArrayLike<number>;
  rewards: ArrayLike<number>;
  /** Rewards with penalties, before reward normalisation. */
  scores: ArrayLike<number>;
  successes: ArrayLike<boolean>;
}

export interface FilteredTrajectories {
  /** 1 for each episode that is kept. */
  kept: Uint8Array;
  /** `rollout/trajectory_filter_…` metrics; none with strategy `none`. */
  metrics: Record<string, number>;
}

/**
 * Keeps `value` of all episodes (rounded down, at least one), best first; with `only_successful` only those that
 * succeeded, all of them where they are fewer, and none where none did. Episodes that are equally good are taken from
 * the groups in turn, in batch order. An episode whose value is NaN is never kept.
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
 * Best first; of equal episodes the first of each group, then the second of each, so that no group is preferred for its
 * place.
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
