// Results of an evaluation: metrics under RAGEN's keys, and a summary with success, pass@k and their intervals, per tag
// and overall. All results are computed from the episodes in the run folder, so a resumed evaluation gives the same
// results. Episodes whose environment failed are excluded from the means and counted separately, because they do not
// measure the model.
import type { MeasuredEpisode } from '../../../envs/api/plugins/measured-episode';
import type { Episode } from '../../run-data/episode';
import type { Manifest } from '../../run-data/run-manifest';
import type { RunConfig } from '../config/schema';
import { measuredWith, rolloutMetrics } from '../diagnostics/built-in-metrics';
import { episodicReturn } from '../rollout/rollout-batch';
import { noteMetrics } from '../rollout/rollout-metrics';
import { asksForThoughts } from '../rollout/turn-protocol';
import { finiteOnly, metricsOfRollout } from '../loop/metric-statistics';
import { meanOverGroups, passAtK, passSizes } from './success-statistics';
import type { Estimate } from './success-statistics';
import type { TrajectoryFacts } from './trajectory-line';

interface Success {
  groups: number;
  episodes: number;
  /** Mean success with its interval; null if the environment failed in every episode. */
  success: Estimate | null;
  /**
   * For each k, pass@k: the probability that at least one of k episodes of a prompt is solved, averaged over the
   * prompts.
   */
  pass_at: Record<string, Estimate>;
}

export interface EvaluationSummary {
  run: string;
  created: string;
  config_name: string;
  config_hash: string;
  seed: number;
  model: Manifest['model'];
  group_size: number;
  overall: Success;
  tags: Record<string, Success & { failed_environments: number; versions: string[]; metrics: Record<string, number> }>;
  /** Mean entropy over the sampled tokens, in nats; null if entropy was not computed. */
  entropy: number | null;
  generated_tokens: number;
  /** API usage and failed episodes; present only for a model behind an API. */
  api?: {
    requests: number;
    input_tokens: number;
    output_tokens: number;
    /** Cost in the currency of the configured prices; null if none are configured. */
    cost: number | null;
    /** Number of episodes that ended with an unusable response, by reason. */
    failed_episodes: { length: number; content_filter: number; refused: number };
  };
  metrics: Record<string, number>;
  wall_s: number;
  files: { trajectories: string; summary: string };
}

/** Keys of `Episode.metrics` that an evaluation adds to the keys of the environment. */
export const addedMetrics = {
  entropy: 'entropy',
  tokens: 'n_generated_tokens',
  turns: 'n_turns',
  contextFull: 'context_full',
  contextShortened: 'context_shortened',
  requests: 'api_requests',
  inputTokens: 'api_input_tokens',
  outputTokens: 'api_output_tokens',
  cut: 'api_failed/length',
  filtered: 'api_failed/content_filter',
  refused: 'api_failed/refused',
} as const;

/**
 * Returns the metrics of the whole evaluation under the keys of a validation, which begin with `val-env/`. Also sets
 * the metric `pass@<group_size>` of each episode.
 */
export function evaluationMetrics(
  episodes: readonly Episode[],
  config: Pick<RunConfig, 'es_manager' | 'agent_proxy' | 'custom_envs'>,
): Record<string, number> {
  const thinks = asksForThoughts(config);
  const played = episodes.map(episode => ({
    ...episode,
    success: episode.success === true,
    episodic_return: episodicReturn(episode),
  }));
  noteMetrics(played, config.es_manager.val.group_size);
  const measured = played.map(episode => measuredEpisode(episode, thinks(episode.tag)));
  const metrics = measuredWith(rolloutMetrics, { step: 0, episodes: [], played: measured, metrics: {} });
  return finiteOnly(metricsOfRollout({ metrics }, 'val-env'));
}

/**
 * Converts a stored episode to the form that metrics receive. The number of tokens is the recorded one, because an API
 * model has no token ids to count.
 */
function measuredEpisode(
  record: Omit<Episode, 'success'> & { success: boolean; episodic_return: number },
  thinks: boolean,
): MeasuredEpisode {
  const { id, tag, group_id: group, member, seed, terminated, truncated, success, reward, penalty, score } = record;
  const { turns, metrics, judgements, error, episodic_return } = record;
  return {
    ...{ id, tag, group, member, seed, terminated, truncated, success, reward, penalty, score },
    ...{ tokens: metrics[addedMetrics.tokens], turns, kept: false, thinks, episodic_return },
    context_full: metrics[addedMetrics.contextFull] === 1,
    context_shortened: metrics[addedMetrics.contextShortened] === 1,
    metrics,
    ...(judgements && { judgements }),
    ...(error !== undefined && { error }),
  };
}

/** Returns the fields of a trajectory line that are not in the episode's record. */
export function trajectoryFacts({ tag, metrics }: Episode): TrajectoryFacts {
  const { entropy, tokens, turns } = addedMetrics;
  const own = Object.entries(metrics).filter(([key]) => key !== entropy && key !== tokens && key !== turns);
  return {
    metrics: Object.fromEntries(own.map(([key, value]) => [`${tag}/${key}`, value])),
    entropy: metrics[entropy] ?? null,
    n_tokens: metrics[tokens],
  };
}

export interface SummaryRequest {
  manifest: Manifest;
  config: RunConfig;
  wall_s: number;
  prices?: { input: number; output: number };
  files: EvaluationSummary['files'];
}

export function summarizeEvaluation(
  { manifest, config, wall_s, prices, files }: SummaryRequest,
  episodes: readonly Episode[],
  metrics: Readonly<Record<string, number>>,
): EvaluationSummary {
  const { group_size } = config.es_manager.val;
  const tags = [...new Set(episodes.map(({ tag }) => tag))].map((tag): [string, EvaluationSummary['tags'][string]] => {
    const own = episodes.filter(episode => episode.tag === tag);
    const prefix = `val-env/${tag}/`;
    return [
      tag,
      {
        ...successOf(own, group_size),
        failed_environments: own.filter(({ error }) => error !== undefined).length,
        versions: [...new Set(own.map(({ environment }) => environment.version))],
        metrics: Object.fromEntries(
          Object.entries(metrics).flatMap(([key, value]) =>
            key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : [],
          ),
        ),
      },
    ];
  });
  const total = (key: string): number => episodes.reduce((sum, { metrics }) => sum + (metrics[key] ?? 0), 0);
  const { entropy, tokens, requests } = addedMetrics;
  const measured = episodes.filter(({ metrics }) => metrics[entropy] !== undefined);
  const weight = measured.reduce((sum, { metrics }) => sum + metrics[tokens], 0);
  const input_tokens = total(addedMetrics.inputTokens);
  const output_tokens = total(addedMetrics.outputTokens);
  return {
    run: manifest.id,
    created: manifest.created,
    config_name: manifest.config_name,
    config_hash: manifest.config_hash,
    seed: config.seed.val,
    model: manifest.model,
    group_size,
    overall: successOf(episodes, group_size),
    tags: Object.fromEntries(tags),
    entropy:
      weight > 0 ? measured.reduce((sum, { metrics }) => sum + metrics[entropy] * metrics[tokens], 0) / weight : null,
    generated_tokens: total(tokens),
    ...(episodes.some(({ metrics }) => metrics[requests] !== undefined) && {
      api: {
        requests: total(requests),
        input_tokens,
        output_tokens,
        cost: prices ? (input_tokens * prices.input + output_tokens * prices.output) / 1e6 : null,
        failed_episodes: {
          length: total(addedMetrics.cut),
          content_filter: total(addedMetrics.filtered),
          refused: total(addedMetrics.refused),
        },
      },
    }),
    metrics,
    wall_s,
    files,
  };
}

function successOf(episodes: readonly Episode[], group_size: number): Success {
  const counted = episodes.filter(({ error }) => error === undefined);
  const groups = [...new Set(counted.map(({ group_id }) => group_id))].map(id => {
    const members = counted.filter(({ group_id }) => group_id === id);
    return { n: members.length, c: members.filter(({ success }) => success).length };
  });
  const atSize = (k: number) => groups.filter(({ n }) => n >= k);
  const sizes = passSizes(group_size).filter(k => atSize(k).length > 0);
  return {
    groups: groups.length,
    episodes: counted.length,
    success:
      groups.length > 0
        ? meanOverGroups(
            groups.map(({ n, c }) => c / n),
            counted.length,
          )
        : null,
    pass_at: Object.fromEntries(
      sizes.map(k => {
        const large = atSize(k);
        const draws = large.reduce((sum, { n }) => sum + Math.floor(n / k), 0);
        return [
          k,
          meanOverGroups(
            large.map(({ n, c }) => passAtK(n, c, k)),
            draws,
          ),
        ];
      }),
    ),
  };
}
