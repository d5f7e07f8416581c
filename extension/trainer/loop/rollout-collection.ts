// Collects the rollout of a training step and selects the episodes to train on. RAGEN plays one batch and filters it.
// With dynamic sampling (DAPO's `algorithm.filter_groups`), further batches are played until the filter has kept enough
// groups in which the episodes' scores differ, or until the limit of batches is reached. If the step fails, the seed
// counter is restored.
import type { MeasuredStep } from '../../../envs/api/plugins/metric';
import type { RoleReturn } from '../../run-data/role-return';
import type { GroupRow } from '../../run-data/step-lines';
import { groupsToSample, overlongReward, filterGroups } from '../../algorithms/dapo';
import { normalizeRewards } from '../../algorithms/reward-normalization';
import { filterRollouts } from '../../algorithms/rollout-filter';
import type { FilteredRollout } from '../../algorithms/rollout-filter';
import { filterTrajectories } from '../../algorithms/trajectory-filter';
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import type { PluginSet } from '../plugins/plugin-set';
import type { Engine } from '../../engine/engine';
import type { LoadedModel } from '../../engine/load-options';
import { passBudget } from '../run/pass-budget';
import type { BatchPlayer, PlayedAhead } from '../run/batch-player';
import { isTrainable, scoreOf } from '../rollout/rollout-batch';
import type { EnvGroups } from '../rollout/group-layout';
import type { RolloutBatch, RolloutEpisode } from '../rollout/rollout-batch';
import type { RolloutSample } from '../rollout/rollout-sample';
import { roleReturns } from '../rollout/role-credit';
import { returnsOf } from '../rollout/role-returns';
import { measuredStep } from '../rollout/measured-step';
import { noteMetrics } from '../rollout/rollout-metrics';
import { asksForThoughts } from '../rollout/turn-protocol';
import { measuredWith, rolloutMetrics } from '../diagnostics/built-in-metrics';
import { promptGroups, runFilter, selectionOf } from './group-filter';
import { metricsOfRollout } from './metric-statistics';
import { filterResponses } from './response-filters';
import type { Stopwatch } from './stopwatch';

/** Log-probs and entropies of a sample's tokens under the policy before the update. */
export interface ScoredSample {
  logprobs: Float32Array;
  entropies: Float32Array;
}

export interface RolloutCollection {
  /** All episodes of all batches of the step. */
  episodes: RolloutEpisode[];
  /**
   * `trainable`: episodes whose environment did not fail; with ReMax, the greedy episode of their group must not have
   * failed either. `kept`: the trainable episodes on which the step trains.
   */
  trainable: RolloutEpisode[];
  kept: RolloutEpisode[];
  /** The episodes as metrics receive them. */
  measured: MeasuredStep;
  /** Number of kept groups divided by the number of played groups, 0…1. */
  keptRatio: number;
  /**
   * Log-probs and entropies that the rollout filter computed in order to rank groups by entropy; empty if the filter
   * ranks by another metric.
   */
  scored: ReadonlyMap<RolloutSample, ScoredSample>;
  /** Score of each group's greedy episode by group id; empty unless the estimator is ReMax. */
  baselines: ReadonlyMap<number, number>;
  /** Rows of the group table (`trainer.log_group_rv_table`). */
  groups: GroupRow[];
  metrics: Record<string, number>;
}

interface Round {
  environmentSeconds: number;
  episodes: RolloutEpisode[];
  trainable: RolloutEpisode[];
  /**
   * Ids of the groups that pass the rollout filter, in batch order; with dynamic sampling, the scores within each of
   * these groups must also differ.
   */
  keptGroups: number[];
  filtered: FilteredRollout;
  scored: Map<RolloutSample, ScoredSample>;
  baselines: Map<number, number> | null;
}

/** The parts of a run that a rollout uses; `config` must not change while the rollout is collected. */
export interface CollectingRun {
  readonly config: RunConfig;
  readonly batches: Pick<BatchPlayer, 'seeds' | 'restoreSeeds' | 'rollout' | 'rolloutAside' | 'rolloutGreedy'>;
  readonly engine: Pick<Engine, 'score'>;
  readonly model: Pick<LoadedModel, 'vocabSize'>;
  readonly plugins: { readonly set: Pick<PluginSet, 'plugin'> };
  /** Shows the progress of the next engine call under the label `what`. */
  follow(what: string): void;
}

/**
 * Plays and filters the batches of step `step`.
 * @param aside if given, a separate rollout with this layout and its own prompts is played; the seed counter of the
 * training does not advance
 * @param ahead if given, the rollout is played while earlier steps train
 * @param groups layout of the batches, by default that of `es_manager.train`
 * @throws errors of the rollout
 */
export async function collectRollout(
  run: CollectingRun,
  step: number,
  clock: Stopwatch,
  { aside, ahead, groups }: { aside?: EnvGroups; ahead?: PlayedAhead; groups?: EnvGroups } = {},
): Promise<RolloutCollection> {
  const { algorithm, es_manager, workbench } = run.config;
  const { enable, max_num_gen_batches } = algorithm.filter_groups;
  const layout = aside ?? groups ?? es_manager.train;
  const { env_groups: wanted, group_size } = layout;
  const seeds = run.batches.seeds;
  const rounds: Round[] = [];
  const play = (round: number) =>
    aside ? run.batches.rolloutAside(step, round, aside) : run.batches.rollout('train', step, round, ahead, groups);
  try {
    do {
      const round = rounds.length;
      const rollout = await clock.time('gen', () => play(round));
      const greedy = { step, round, layout, seed: rollout.episodes[0].seed };
      const baselines = await greedyScores(run, greedy, clock, ahead);
      rounds.push(await playRound(run, rollout, baselines, clock));
    } while (enable && groupsToSample(progress()) > 0);
  } catch (error) {
    run.batches.restoreSeeds(seeds);
    throw error;
  }
  const episodes = rounds.flatMap(round => round.episodes);
  const trainable = rounds.flatMap(round => round.trainable);
  const keptGroups = new Set(rounds.flatMap(round => round.keptGroups).slice(0, wanted));
  const ofKeptGroups = trainable.filter(({ group_id }) => keptGroups.has(group_id));
  const best = filterTrajectories(
    {
      groups: ofKeptGroups.map(e => e.group_id),
      rewards: ofKeptGroups.map(e => e.reward),
      scores: ofKeptGroups.map(e => e.score),
      successes: ofKeptGroups.map(e => e.success),
    },
    workbench.trajectory_filter,
  );
  const readable = filterResponses(ofKeptGroups, workbench, run.model.vocabSize);
  const baselines = new Map(rounds.flatMap(round => [...(round.baselines ?? [])]));
  const played = rounds.reduce((sum, { filtered }) => sum + filtered.groups.length, 0);
  const kept = ofKeptGroups.filter((_, i) => best.kept[i] && readable.kept[i]);
  noteMetrics(episodes, group_size);
  const measured = measuredStep({ step, played: episodes, trainable, kept }, asksForThoughts(run.config));
  return {
    episodes,
    trainable,
    kept,
    measured,
    keptRatio: played > 0 ? keptGroups.size / played : 0,
    scored: new Map(rounds.flatMap(round => [...round.scored])),
    baselines,
    groups: rounds.flatMap(round => groupRows(round, step, keptGroups)),
    metrics: {
      ...metricsOfRollout({ metrics: measuredWith(rolloutMetrics, measured) }, 'train'),
      'timing_s/env': rounds.reduce((sum, { environmentSeconds }) => sum + environmentSeconds, 0),
      ...filterMetrics(rounds, keptGroups.size, played),
      ...best.metrics,
      ...readable.metrics,
      ...(baselines.size > 0 && { 'rollout/greedy_score': meanOf([...baselines.values()]) }),
      ...(algorithm.filter_groups.enable && { 'train/rollout_attempts': rounds.length }),
    },
  };

  function progress() {
    const kept = rounds.reduce((sum, { keptGroups }) => sum + keptGroups.length, 0);
    return { wanted, kept, sampled: wanted * rounds.length, rounds: rounds.length, max_num_gen_batches };
  }
}

/**
 * Plays one greedy episode per group for ReMax, and returns the scores of these episodes by group id; null for other
 * estimators. A group whose greedy episode failed has no entry and is not used for training.
 */
async function greedyScores(
  run: CollectingRun,
  batch: { step: number; round: number; layout: EnvGroups; seed: number },
  clock: Stopwatch,
  ahead?: PlayedAhead,
): Promise<Map<number, number> | null> {
  if (run.config.algorithm.adv_estimator !== 'remax') return null;
  const { episodes } = await clock.time('gen_max', () => run.batches.rolloutGreedy(batch, ahead));
  return new Map(episodes.filter(isTrainable).map(e => [e.group_id, shaped(e, run.config).score]));
}

async function playRound(
  run: CollectingRun,
  rollout: RolloutBatch,
  baselines: Map<number, number> | null,
  clock: Stopwatch,
): Promise<Round> {
  const { config } = run;
  const { rollout: sampling } = config.actor_rollout_ref;
  const episodes = rollout.episodes.map(episode => shaped(episode, config));
  const trainable = episodes.filter(e => isTrainable(e) && (baselines?.has(e.group_id) ?? true));
  return clock.time('filter', async () => {
    const filter = runFilter(sampling, run.plugins.set);
    const scored =
      filter.needs === 'entropy' ? await scoreSamples(run, trainable) : new Map<RolloutSample, ScoredSample>();
    const entropyOf = (episode: RolloutEpisode) => (filter.needs ? meanEntropy(episode, scored) : undefined);
    const groups = promptGroups(trainable, { scoreOf: filterScores(trainable, config), entropyOf }, config.seed.train);
    const selection = await selectionOf(filter, groups, trainable[0]?.step ?? 0, config);
    const filtered = filterRollouts(groups, selection, filter.measured);
    const passed = new Set(filtered.groups.filter((_, i) => filtered.selected[i]));
    const { enable, metric: outcome } = config.algorithm.filter_groups;
    const values = returnsOf(trainable);
    const differing = new Set(
      filterGroups({
        groups: values.map(each => each.group),
        scores: values.map(each => (outcome === 'acc' ? Number(each.success) : each.score)),
      }).kept,
    );
    const ids = new Set(values.filter(each => differing.has(each.group)).map(({ episode }) => episode.group_id));
    const informative = enable ? filtered.groups.filter(group => ids.has(group)) : filtered.groups;
    const keptGroups = informative.filter(group => passed.has(group));
    return {
      environmentSeconds: rollout.environmentSeconds,
      episodes,
      trainable,
      keptGroups,
      filtered,
      scored,
      baselines,
    };
  });
}

/**
 * Adds the overlong penalty (`reward_model.overlong_buffer`) to the penalty of each turn and to the score of the
 * episode.
 */
export function shaped(episode: RolloutEpisode, { reward_model, actor_rollout_ref }: RunConfig): RolloutEpisode {
  const { overlong_buffer: buffer } = reward_model;
  if (!buffer.enable) return episode;
  const { response_length } = actor_rollout_ref.rollout;
  const lengths = new Map(
    episode.samples.flatMap(({ turns }) =>
      turns.map(({ turn, span: [from, to] }): [number, number] => [turn, to - from]),
    ),
  );
  const turns = episode.turns.map(turn => ({
    ...turn,
    penalty: turn.penalty + overlongReward(lengths.get(turn.turn) ?? 0, response_length, buffer),
  }));
  const penalty = turns.reduce((sum, turn) => sum + turn.penalty, 0);
  const roles = episode.roles && { roles: roleReturns(episode.roles, turns, episode.end_reward) };
  return { ...episode, turns, penalty, score: scoreOf({ ...episode, penalty }), ...roles };
}

/**
 * Returns the scores from which the rollout filter computes its metrics. By default these are raw scores, because
 * normalisation gives all groups about the same std. With `workbench.compat: ragen`, these are normalised scores, as in
 * RAGEN.
 */
const filterScores = (episodes: readonly RolloutEpisode[], config: RunConfig): ScoreOf =>
  config.workbench.compat === 'ragen' ? normalizedScores(episodes, config) : rawScore;

/** Returns the score of an episode or, in an episode with roles, of one of its roles. */
export type ScoreOf = (episode: RolloutEpisode, role: string | undefined) => number;

const rawScore: ScoreOf = (episode, role) => (role === undefined ? episode.score : episode.roles![role].score);

/** Returns the scores of the episodes and of their roles, normalised by `agent_proxy.reward_normalization`. */
export function normalizedScores(episodes: readonly RolloutEpisode[], { agent_proxy }: RunConfig): ScoreOf {
  const returns = returnsOf(episodes);
  const scores = normalizeRewards(
    { scores: returns.map(e => e.score), groups: returns.map(e => e.group), tags: returns.map(e => e.tag) },
    agent_proxy.reward_normalization,
  );
  const found = new Map<RolloutEpisode, Map<string | undefined, number>>();
  returns.forEach(({ episode, role }, i) =>
    found.set(episode, (found.get(episode) ?? new Map<string | undefined, number>()).set(role, scores[i])),
  );
  return (episode, role) => found.get(episode)?.get(role) ?? 0;
}

async function scoreSamples(
  run: CollectingRun,
  episodes: readonly RolloutEpisode[],
): Promise<Map<RolloutSample, ScoredSample>> {
  const { rollout } = run.config.actor_rollout_ref;
  const samples = episodes.flatMap(episode => episode.samples);
  const budget = passBudget(run.config, rollout.log_prob_micro_batch_size_per_gpu, samples.length);
  run.follow('entropies for the filter');
  const bare = samples.map(({ ids, mask, shows }) => ({ ids, mask, shows }));
  const { logprobs, entropies } = await run.engine.score('actor', bare, budget, rollout.temperature);
  if (!entropies)
    throw new UserError(
      `config: actor_rollout_ref.rollout.rollout_filter_metric is ${rollout.rollout_filter_metric}, which needs entropies, but a server of the Tinker API returns none: choose a filter without needs: 'entropy'`,
    );
  return new Map(samples.map((sample, i) => [sample, { logprobs: logprobs[i], entropies: entropies[i] }]));
}

const meanOf = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

/**
 * Returns the mean entropy over the trained tokens of each sample, averaged over the samples; 0 if no sample was
 * scored.
 */
function meanEntropy({ samples }: RolloutEpisode, scored: ReadonlyMap<RolloutSample, ScoredSample>): number {
  const means = samples.flatMap(sample => {
    const { entropies } = scored.get(sample) ?? {};
    if (!entropies) return [];
    let [sum, count] = [0, 0];
    sample.mask.forEach((bit, token) => bit && ((sum += entropies[token]), count++));
    return [sum / count];
  });
  return means.reduce((sum, x) => sum + x, 0) / Math.max(means.length, 1);
}

function groupRows({ trainable, filtered }: Round, step: number, kept: ReadonlySet<number>): GroupRow[] {
  return filtered.groups.map((group_id, i) => {
    const members = trainable.filter(e => e.group_id === group_id);
    const { tag, seed } = members[0];
    const scores = members.map(e => firstTrained(e)?.score ?? e.score);
    return { step, group_id, tag, seed, scores, reward_std: filtered.groupStds[i], selected: kept.has(group_id) };
  });
}

/** Returns the return of the first role that the policy plays; undefined without roles. */
const firstTrained = ({ roles }: RolloutEpisode): RoleReturn | undefined =>
  Object.values(roles ?? {}).find(({ player }) => player === undefined);

/**
 * Returns the filter's metrics, averaged over the batches of a step. The number of kept groups and the number of groups
 * with score zero are not averaged but summed.
 */
function filterMetrics(rounds: readonly Round[], kept: number, played: number): Record<string, number> {
  const all = rounds.map(({ filtered }) => filtered.metrics);
  const keys = new Set(all.flatMap(metrics => Object.keys(metrics)));
  const metrics = Object.fromEntries(
    [...keys].map(key => {
      const values = all.flatMap(metrics => metrics[key] ?? []);
      return [key, values.reduce((sum, x) => sum + x, 0) / values.length];
    }),
  );
  return {
    ...metrics,
    'rollout/filter_kept_count': kept,
    'rollout/filter_kept_ratio': played > 0 ? kept / played : 0,
    'rollout/filter_zero_count': all.reduce((sum, metrics) => sum + metrics['rollout/filter_zero_count'], 0),
  };
}
