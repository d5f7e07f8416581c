// Metrics of the episodes of a rollout under RAGEN's keys. The metrics of the rollout itself are built-in metrics
// (diagnostics/built-in-metrics.ts), which average those of the episodes over each tag.
import { mean } from '../../common/lists';
import { measuredWith, rolloutMetrics } from '../diagnostics/built-in-metrics';
import { measuredStep } from './measured-step';
import type { RolloutEpisode } from './rollout-batch';

/** The parts of an episode from which its metrics are computed. */
export type NotedEpisode = Pick<
  RolloutEpisode,
  'tag' | 'group_id' | 'success' | 'turns' | 'episodic_return' | 'components' | 'component_reward' | 'roles' | 'metrics'
>;

/** Keys of `info` with special handling; all other numbers and flags are averaged over the episode's turns. */
const ownMeaning = new Set(['success', 'raw_reward', 'score', 'max_tile']);
const perTurnInWebShop = new Set(['action_is_effective', 'action_is_valid', 'end_of_page', 'manager_invalid_action']);

/** Metrics of one finished episode; the keys do not include the tag. */
export function episodeMetrics(episode: Omit<NotedEpisode, 'metrics' | 'group_id'>): Record<string, number> {
  const { turns } = episode;
  const metrics: Record<string, number> = {
    success: Number(episode.success),
    num_actions: turns.reduce((sum, { executed }) => sum + executed.length, 0),
  };
  if (turns.some(({ info }) => numeric(info.raw_reward) !== undefined))
    metrics.episodic_return = episode.episodic_return;
  const score = lastNumber(turns, 'score');
  if (score !== undefined) metrics.final_score = score;
  const tile = lastNumber(turns, 'max_tile');
  if (tile !== undefined) metrics.max_tile = tile;
  Object.assign(metrics, callMetrics(turns));
  const sums = new Map<string, number>();
  for (const { info } of turns)
    for (const [key, value] of Object.entries(info)) {
      const number = numeric(value);
      if (number !== undefined && !ownMeaning.has(key)) sums.set(key, (sums.get(key) ?? 0) + number);
    }
  Object.assign(metrics, componentMetrics(episode), roleMetrics(episode));
  const webShop = episode.tag.toLowerCase().includes('webshop');
  for (const [key, sum] of sums)
    if (webShop && !perTurnInWebShop.has(key)) metrics[`traj_sum/${key}`] = sum;
    else metrics[key] = sum / turns.length;
  return metrics;
}

/** Start of the keys of roles. */
const roles = 'roles/';

/** Returns the return, the success and the number of turns of each role that played; nothing without roles. */
const roleMetrics = (episode: Pick<RolloutEpisode, 'roles'>): Record<string, number> =>
  Object.fromEntries(
    Object.entries(episode.roles ?? {})
      .filter(([, { turns }]) => turns > 0)
      .flatMap(([role, { score, success, turns }]) => [
        [`${roles}${role}/score`, score],
        [`${roles}${role}/success`, Number(success)],
        [`${roles}${role}/turns`, turns],
      ]),
  );

/** Start of the keys of reward components. */
const components = 'components/';

/**
 * Returns the mean of each reward component over the turns of an episode that have a value, and the component's value
 * for the complete episode. Also returns the weighted sum of all components.
 */
function componentMetrics(episode: Pick<RolloutEpisode, 'turns' | 'components' | 'component_reward'>) {
  if (episode.component_reward === undefined) return {};
  const values = new Map<string, number[]>();
  for (const found of [...episode.turns.map(turn => turn.components), episode.components])
    for (const [name, value] of Object.entries(found ?? {})) values.set(name, [...(values.get(name) ?? []), value]);
  const means = Array.from(values, ([name, found]) => [`${components}${name}`, mean(found)] as const);
  return { component_reward: episode.component_reward, ...Object.fromEntries(means) };
}

/** Returns the number of tool calls and their failed share; nothing if the episode has no calls. */
function callMetrics(turns: RolloutEpisode['turns']): Record<string, number> {
  const calls = turns.flatMap(turn => turn.calls ?? []);
  if (calls.length === 0) return {};
  const failed = calls.filter(({ error }) => error).length;
  const ms = calls.reduce((sum, call) => sum + call.ms, 0);
  return { tool_calls: calls.length, failed_tool_calls: failed / calls.length, tool_call_ms: ms / calls.length };
}

/**
 * Sets `metrics` of each episode. `pass@<group_size>` of an episode is 1 if any member of its group succeeded,
 * otherwise 0.
 */
export function noteMetrics(episodes: readonly NotedEpisode[], group_size: number): void {
  const solved = new Set(episodes.filter(({ success }) => success).map(({ group_id }) => group_id));
  for (const episode of episodes)
    Object.assign(episode.metrics, episodeMetrics(episode), {
      [`pass@${group_size}`]: Number(solved.has(episode.group_id)),
    });
}

/**
 * Sets `metrics` of each episode and returns the metrics of the batch.
 * @param thinks whether the prompts of a tag ask for a thought
 */
export function measureRollout(
  episodes: readonly RolloutEpisode[],
  group_size: number,
  thinks: (tag: string) => boolean,
): Record<string, number> {
  noteMetrics(episodes, group_size);
  const step = measuredStep({ step: episodes[0]?.step ?? 0, played: episodes }, thinks);
  return measuredWith(rolloutMetrics, step);
}

function lastNumber(turns: RolloutEpisode['turns'], key: string): number | undefined {
  return turns.map(({ info }) => numeric(info[key])).findLast(value => value !== undefined);
}

/** Converts a finite number or a flag to a number; returns undefined for other values. */
function numeric(value: unknown): number | undefined {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
