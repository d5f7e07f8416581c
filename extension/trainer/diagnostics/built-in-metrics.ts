// The built-in metrics that are measured from the episodes of a step, in the interface that plug-ins implement
// (envs/api/plugins/metric.ts). Values by key have complete keys; metric-statistics.ts adds the side (`train/` or
// `val-env/`) to those of a rollout. If the environment of an episode failed, the episode says nothing about the policy.
// Such an episode is therefore excluded from all means and counted only in `env_error_rate`.
import type { MeasuredEpisode, MeasuredTurn } from '../../../envs/api/plugins/measured-episode';
import type { MeasuredStep, Metric } from '../../../envs/api/plugins/metric';
import { maximum, mean } from '../../common/lists';
import { judgeMetrics } from './judge-agreement';
import { promptInformation } from './prompt-information';
import { thoughtRepetition } from './thought-repetition';

/** Measures the counted episodes; without any, the metric has no values. */
const ofCounted =
  (measure: (counted: readonly MeasuredEpisode[]) => ReturnType<Metric['measure']>): Metric['measure'] =>
  ({ played }) => {
    const counted = played.filter(({ error }) => error === undefined);
    return counted.length > 0 ? measure(counted) : {};
  };

const turnsOf = (episodes: readonly MeasuredEpisode[]): MeasuredTurn[] => episodes.flatMap(({ turns }) => turns);

/** The metrics of a rollout, of training and of validations, in the order of the log. */
export const rolloutMetrics: readonly Metric[] = [
  {
    name: 'env_error_rate',
    measure: ({ played }) => 1 - played.filter(({ error }) => error === undefined).length / played.length,
  },
  {
    name: 'tags',
    measure: ofCounted(counted => {
      const metrics: Record<string, number> = {};
      for (const tag of new Set(counted.map(episode => episode.tag)))
        Object.assign(
          metrics,
          tagMetrics(
            tag,
            counted.filter(episode => episode.tag === tag),
          ),
        );
      return metrics;
    }),
  },
  {
    name: 'rollout/max_tile',
    measure: ofCounted(counted => {
      const tiles = counted.map(({ metrics }) => metrics.max_tile).filter(tile => tile !== undefined);
      return tiles.length > 0 ? maximum(tiles) : {};
    }),
  },
  {
    name: 'charts/avg_episode_return',
    measure: ofCounted(counted => mean(counted.map(({ episodic_return }) => episodic_return))),
  },
  { name: 'num_episodes', measure: ofCounted(({ length }) => length) },
  { name: 'response_length', measure: ofCounted(counted => mean(counted.map(({ tokens }) => tokens))) },
  {
    name: 'response_length/clip_ratio',
    measure: ofCounted(counted => mean(turnsOf(counted).map(({ finish }) => Number(finish === 'length')))),
  },
  { name: 'num_turns/mean', measure: ofCounted(counted => turnsOf(counted).length / counted.length) },
  { name: 'context_full', measure: ofCounted(counted => mean(counted.map(each => Number(each.context_full)))) },
  {
    name: 'context_shortened',
    measure: ofCounted(counted => mean(counted.map(each => Number(each.context_shortened)))),
  },
];

/**
 * The metrics that need only the texts of a training step: repetition of thoughts, how much first thoughts depend on
 * their prompt, share of responses without a valid action and, over the episodes whose prompts ask for a thought, the
 * share of responses with a thought.
 */
export const textMetrics: readonly Metric[] = [
  { name: 'thoughts', measure: ({ episodes }) => thoughtRepetition(thoughtsOf(turnsOf(episodes))) },
  {
    name: 'thoughts/prompt_information',
    measure: ({ episodes }) =>
      promptInformation(
        episodes.flatMap(({ turns: [first], group: prompt }) =>
          first?.thought ? [{ prompt, thought: first.thought }] : [],
        ),
      ),
  },
  {
    name: 'rollout/invalid_answer_rate',
    measure: ({ episodes }) =>
      share(turnsOf(episodes), turns => turns.filter(({ executed }) => executed.length === 0).length),
  },
  {
    name: 'thoughts/rate',
    measure: ({ episodes }) =>
      share(turnsOf(episodes.filter(({ thinks }) => thinks)), turns => thoughtsOf(turns).length),
  },
];

/** Returns the values of built-in metrics of a step by key, in the order of the metrics. */
export function measuredWith(metrics: readonly Metric[], step: MeasuredStep): Record<string, number> {
  const values: Record<string, number> = {};
  for (const { name, measure } of metrics) {
    const value = measure(step);
    if (typeof value === 'number') values[name] = value;
    else for (const [key, each] of Object.entries(value)) if (each !== undefined) values[key] = each;
  }
  return values;
}

/**
 * Returns two metrics per key. `<tag>/<key>` is the mean over the episodes of a tag; an episode without the key
 * contributes 0. `<tag>/non-zero/<key>` is the mean of the non-zero values; this metric is absent if all values are 0.
 * A reward component and a role have one metric: the mean over the episodes that have a value.
 */
function tagMetrics(tag: string, episodes: readonly MeasuredEpisode[]): Record<string, number> {
  const metrics: Record<string, number> = { [`${tag}/num_episodes`]: episodes.length };
  for (const key of new Set(episodes.flatMap(episode => Object.keys(episode.metrics)))) {
    if (key.startsWith('components/') || key.startsWith('roles/')) {
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

const thoughtsOf = (turns: readonly MeasuredTurn[]): string[] =>
  turns.flatMap(({ thought }) => (thought === null || thought.trim() === '' ? [] : [thought]));

/** Returns the share of the turns that `count` counts; no value without turns. */
const share = (turns: readonly MeasuredTurn[], count: (turns: readonly MeasuredTurn[]) => number) =>
  turns.length > 0 ? count(turns) / turns.length : {};
