// Describes the rollout filter's decisions on the prompt groups of a step. The run's log records which groups were
// kept. The reason for each decision is derived from the scores and never changes the logged decision. For a filter by
// entropy, only the rule is shown: the episodes do not contain the data from which reasons could be derived.
import type { FilterSettings } from '../../../extension/run-data/collapse-settings';
import type { PromptGroup } from '../../../extension/protocol/collapse-page';
import { maximum } from '../../../extension/common/lists';
import { formatNumber, formatPercent } from '../../shared/format';

export interface JudgedGroup extends PromptGroup {
  mean: number;
  /** Unbiased standard deviation of the scores; 0 for one episode. */
  std: number;
  /** Why the group was kept or dropped; empty if unknown. */
  why: string;
}

/** Describes the filter's rule and result: `top_p 0.9 of reward variance: kept 12 of 16`. */
export function formatFilter(filter: FilterSettings | null, groups: readonly PromptGroup[]): string {
  const kept = groups.filter(group => group.kept).length;
  const known = groups.some(group => group.kept !== null);
  const count = known ? `kept ${kept} of ${groups.length}` : 'the kept groups are not recorded';
  if (!filter) return `The filter’s configuration is not known: ${count}`;
  const rule = keepsAll(filter) ? `No filter (${filter.strategy} ${filter.value})` : ruleOf(filter, groups.length);
  const parts = [`${rule}: ${count}`];
  if (!filter.include_zero) parts.push(`groups whose ${metricOf(filter)} is zero are dropped first`);
  if (filter.dynamic_sampling)
    parts.push('then groups without a learning signal are dropped and replaced by groups of further batches');
  if (filter.normalised) parts.push('the filter used normalised scores');
  return parts.join('; ');
}

/**
 * Returns the groups, each with its statistics and the reason why it was kept or dropped. The groups are sorted by the
 * deviation of their scores, largest first.
 */
export function judgedGroups(filter: FilterSettings | null, groups: readonly PromptGroup[]): JudgedGroup[] {
  const judged = groups.map(group => ({ ...group, ...moments(group.episodes.map(({ score }) => score)), why: '' }));
  const measures = new Map(judged.map(group => [group, filter ? measureOf(filter, group) : null]));
  const sign = filter?.type === 'smallest' ? 1 : -1;
  const order = judged.toSorted((a, b) => sign * ((measures.get(a) ?? 0) - (measures.get(b) ?? 0)));
  const total = order.reduce((sum, group) => sum + (measures.get(group) ?? 0), 0);
  const best = maximum(order.map(group => measures.get(group) ?? 0));
  let mass = 0;
  order.forEach((group, i) => {
    const measure = measures.get(group);
    if (!filter || measure === null || measure === undefined || group.kept === null) return;
    const before = mass;
    mass += measure;
    group.why = reason(filter, group, { measure, rank: i + 1, before, mass, total, best });
  });
  return judged.sort((a, b) => b.std - a.std || a.group_id - b.group_id);
}

interface Rank {
  measure: number;
  rank: number;
  /**
   * The filter ranks groups by a measure of their scores. This field is the sum of the measure over all groups that
   * rank before this group. `mass` is this sum plus the measure of this group.
   */
  before: number;
  mass: number;
  total: number;
  best: number;
}

function reason(filter: FilterSettings, { episodes, mean }: JudgedGroup, at: Rank): string {
  if (keepsAll(filter)) return '';
  if (filter.metric.startsWith('reward_') && filter.metric !== 'reward_sum' && at.measure === 0)
    return `all ${episodes.length} episodes score ${formatNumber(mean)}`;
  const rank = `rank ${at.rank}`;
  switch (filter.strategy) {
    case 'top_p':
      if (filter.top_p_prob_mode !== 'linear' || !(at.total > 0)) return rank;
      return at.before < filter.value * at.total
        ? `${rank}; the groups up to this rank have ${formatPercent(at.mass / at.total)} of the metric’s sum over all groups`
        : `${rank}; the groups before this rank already have ${formatPercent(at.before / at.total)} of the metric’s sum over all groups`;
    case 'min_p':
      return at.best > 0 ? `${formatNumber(at.measure / at.best)} of the largest value` : rank;
    default:
      return rank;
  }
}

const keepsAll = ({ strategy, value, include_zero }: FilterSettings): boolean =>
  strategy === 'top_p' && value >= 1 && include_zero;

const metricOf = ({ metric }: FilterSettings): string => metric.replaceAll('_', ' ');

function ruleOf(filter: FilterSettings, groups: number): string {
  const { strategy, value, type } = filter;
  const metric = metricOf(filter);
  switch (strategy) {
    case 'top_p':
      return `${strategy} ${value} of ${type === 'smallest' ? 'the smallest ' : ''}${metric} (${filter.top_p_prob_mode})`;
    case 'top_k':
      return `${strategy} ${value}, the ${Math.max(1, Math.trunc(value * groups))} groups with the ${type} ${metric}`;
    case 'top_k_abs':
      return `${strategy} ${value}, the ${Math.trunc(value)} groups with the ${type} ${metric}`;
    default:
      return `${strategy} ${value} of the ${type === 'smallest' ? 'smallest' : 'best'} ${metric}`;
  }
}

/** Returns the filter's measure of a group; null if it cannot be computed from the run's files. */
function measureOf({ metric, normalised }: FilterSettings, { episodes, mean, std }: JudgedGroup): number | null {
  if (normalised) return null;
  switch (metric) {
    case 'reward_variance':
    case 'reward_std':
      return std;
    case 'reward':
      return mean;
    case 'reward_sum':
      return mean * episodes.length;
    case 'length':
      return moments(episodes.map(({ tokens }) => tokens ?? NaN)).mean;
    default:
      return null;
  }
}

function moments(values: readonly number[]): { mean: number; std: number } {
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  if (values.length < 2 || values.every(x => x === values[0])) return { mean, std: 0 };
  return { mean, std: Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1)) };
}
