// Metrics of a rollout under RAGEN's keys: per episode, and averaged over the episodes of each tag. If the environment
// of an episode failed, the episode says nothing about the policy. Such an episode is therefore excluded from all means
// and counted only in `env_error_rate`.
import { maximum } from '../../common/lists';
import { judgeMetrics } from '../rewards/judge-agreement';
import { sampledTokens, type RolloutEpisode } from './rollout-batch';

/** Keys of `info` with special handling; all other numbers and flags are averaged over the episode's turns. */
const ownMeaning = new Set(['success', 'raw_reward', 'score', 'max_tile']);
const perTurnInWebShop = new Set(['action_is_effective', 'action_is_valid', 'end_of_page', 'manager_invalid_action']);

/** Metrics of one finished episode; the keys do not include the tag. */
export function episodeMetrics(episode: RolloutEpisode): Record<string, number> {
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
 * Sets `metrics` of each episode and returns the metrics of the batch. `pass@group_size` of an episode is 1 if any
 * member of its group succeeded, otherwise 0.
 */
export function measureRollout(episodes: readonly RolloutEpisode[], group_size: number): Record<string, number> {
  const solved = new Set(episodes.filter(({ success }) => success).map(({ group_id }) => group_id));
  for (const episode of episodes)
    Object.assign(episode.metrics, episodeMetrics(episode), {
      [`pass@${group_size}`]: Number(solved.has(episode.group_id)),
    });
  const counted = episodes.filter(({ error }) => !error);
  const metrics: Record<string, number> = { env_error_rate: 1 - counted.length / episodes.length };
  if (counted.length === 0) return metrics;
  for (const tag of new Set(counted.map(episode => episode.tag)))
    Object.assign(
      metrics,
      tagMetrics(
        tag,
        counted.filter(episode => episode.tag === tag),
      ),
    );
  const tiles = counted.map(episode => episode.metrics.max_tile).filter(tile => tile !== undefined);
  if (tiles.length > 0) metrics['rollout/max_tile'] = maximum(tiles);
  const turns = counted.flatMap(episode => episode.turns);
  return {
    ...metrics,
    'charts/avg_episode_return': mean(counted.map(episode => episode.episodic_return)),
    num_episodes: counted.length,
    response_length: mean(counted.map(sampledTokens)),
    'response_length/clip_ratio': mean(turns.map(({ finish }) => Number(finish === 'length'))),
    'num_turns/mean': turns.length / counted.length,
    context_full: mean(counted.map(({ context_full }) => Number(context_full))),
    context_shortened: mean(counted.map(({ context_shortened }) => Number(context_shortened))),
  };
}

/**
 * Returns two metrics per key. `<tag>/<key>` is the mean over the episodes of a tag; an episode without the key
 * contributes 0. `<tag>/non-zero/<key>` is the mean of the non-zero values; this metric is absent if all values are 0.
 * A reward component and a role have one metric: the mean over the episodes that have a value.
 */
function tagMetrics(tag: string, episodes: readonly RolloutEpisode[]): Record<string, number> {
  const metrics: Record<string, number> = { [`${tag}/num_episodes`]: episodes.length };
  for (const key of new Set(episodes.flatMap(episode => Object.keys(episode.metrics)))) {
    if (key.startsWith(components) || key.startsWith(roles)) {
      metrics[`${tag}/${key}`] = mean(episodes.flatMap(episode => episode.metrics[key] ?? []));
      continue;
    }
    const values = episodes.map(episode => episode.metrics[key] ?? 0);
    const nonZero = values.filter(value => value !== 0);
    metrics[`${tag}/${key}`] = mean(values);
    if (nonZero.length > 0) metrics[`${tag}/non-zero/${key}`] = mean(nonZero);
  }
  const judgedThings = episodes.flatMap(({ judgements, turns }) => [judgements, ...turns.map(turn => turn.judgements)]);
  for (const name of new Set(judgedThings.flatMap(judgements => Object.keys(judgements ?? {})))) {
    const judged = judgeMetrics(judgedThings.flatMap(judgements => (judgements?.[name] ? [judgements[name]] : [])));
    for (const [key, value] of Object.entries(judged)) metrics[`${tag}/judges/${name}/${key}`] = value;
  }
  return metrics;
}

function lastNumber(turns: RolloutEpisode['turns'], key: string): number | undefined {
  return turns.map(({ info }) => numeric(info[key])).findLast(value => value !== undefined);
}

/** Converts a finite number or a flag to a number; returns undefined for other values. */
function numeric(value: unknown): number | undefined {
  if (typeof value === 'boolean') return Number(value);
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function mean(values: readonly number[]): number {
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
}
