// StarPO (State-Thinking-Actions-Reward Policy Optimisation; RAGEN, arXiv 2504.20073, §3), to be read from top to
// bottom: play groups of complete episodes, keep the groups with differing scores, compute an advantage for every
// sampled token, and take clipped policy-gradient steps on exactly the sampled token ids. algorithms/ holds the
// computations as pure functions, engine/ runs the model. A written step has its episodes, its metrics line and, when
// due, its checkpoint; a step interrupted by a stop is not written.
import { applyFactors } from './advantage-factors';
import { biLevelGaeAdvantages, nonZeroRewards } from './algorithms/bi-level-gae';
import { arpoAdvantages, brpoAdvantages, grpoAdvantages } from './algorithms/grpo';
import { klInReward } from './algorithms/kl';
import { nextKlCoefficient } from './algorithms/kl-controller';
import { maskedGaeAdvantages } from './algorithms/masked-gae';
import { reinforcePlusPlusAdvantages, reinforcePlusPlusBaselineAdvantages } from './algorithms/reinforce';
import { remaxAdvantages } from './algorithms/remax';
import { rlooAdvantages } from './algorithms/rloo';
import { rolloutWeights } from './algorithms/rollout-correction';
import { spreadOverTokens } from './algorithms/token-sequences';
import { spreadOverTurns, turnGrpoAdvantages } from './algorithms/turn-advantages';
import { diagnoseCollapse } from './collapse-diagnosis';
import { collectRollout, normalizedScores } from './rollout-collection';
import type { RolloutCollection } from './rollout-collection';
import { rolloutCorrection } from './config/rollout-correction';
import type { RunConfig } from './config/schema';
import { afterStep, afterValidation, earlyStop, stopRules } from './early-stops';
import { RandomStream } from './engine/random-stream';
import { RunStopped } from './engine/run-stopped';
import { diagnoseGradients, gradientRollout, gradientsDue } from './gradient-diagnosis';
import { updateActor, updateCritic } from './optimizer-steps';
import type { PreparedBatch } from './optimizer-steps';
import { passBudget } from './pass-budget';
import type { Run, TrainerState } from './run';
import { episodeRecord } from './rollout/episode-record';
import type { TrainedTokens } from './rollout/episode-record';
import { sampledTokens } from './rollout/rollout-batch';
import type { RolloutEpisode } from './rollout/rollout-batch';
import type { RolloutSample } from './rollout/rollout-sample';
import { deriveSeed } from './rollout/seeds';
import { describe, finiteOnly, lengthsOf, meanOf, numbersWhere } from './step-metrics';
import { afterSkips, checkpointDue, refuseSkips, stepOrSkip } from './skipped-steps';
import { timesPerToken, withTimes } from './step-times';
import { Stopwatch } from './stopwatch';
import { adjustedSamplesOf, overJoined, samplesByEpisode, tokenRewards, trainedSamples } from './training-batch';
import type { BatchSample, EstimatedSequence } from './training-batch';
import { validate, validationDue, withValidation } from './validation';
import { alarmStop, checkAlarms, alarmMetrics } from './alarm-monitor';

/**
 * Advantages by `algorithm.adv_estimator` (the per-turn form with `bi_level_gae` or `use_turn_scores`); only gae uses
 * the critic.
 */
const estimators: Record<EstimatorName, Estimator> = {
  gae: (batch, { algorithm }) => batch.ahead(rows => maskedGaeAdvantages(rows, algorithm)),
  gae_by_turn: (batch, { algorithm, workbench }) =>
    batch.ahead(rows =>
      biLevelGaeAdvantages(
        rows.map(row => ({
          ...row,
          mask: row.advantageMask,
          turnEnds: workbench.compat === 'ragen' ? nonZeroRewards(row.rewards) : row.turnEnds,
        })),
        {
          ...algorithm,
          high_level_lam: workbench.high_level_lam ?? algorithm.lam,
          turn_value: workbench.turn_value,
        },
      ),
    ),
  grpo: (batch, { algorithm }) => ({
    advantages: spreadOverTokens(grpoAdvantages(batch, algorithm), batch.masks),
  }),
  grpo_by_turn: (batch, { algorithm }) => ({
    advantages: batch.byTurn(turns => turnGrpoAdvantages(turns, algorithm)),
  }),
  brpo: (batch, { algorithm }) => ({
    advantages: spreadOverTokens(brpoAdvantages(batch, algorithm), batch.masks),
  }),
  arpo: batch => ({
    advantages: spreadOverTokens(arpoAdvantages(batch.scores), batch.masks),
  }),
  rloo: batch => ({
    advantages: spreadOverTokens(rlooAdvantages(batch), batch.masks),
  }),
  remax: batch => batch.ahead(rows => ({ advantages: remaxAdvantages(rows, batch.baselines) })),
  reinforce_plus_plus: (batch, { algorithm }) =>
    batch.ahead(rows => ({
      advantages: reinforcePlusPlusAdvantages(rows, algorithm.gamma),
    })),
  reinforce_plus_plus_baseline: batch => ({
    advantages: reinforcePlusPlusBaselineAdvantages(batch, batch.masks),
  }),
};

/** Trains until the last step or until the run is stopped. On an error everything committed stays on disk. */
export async function train(run: Run, state: TrainerState): Promise<'finished' | 'stopped'> {
  const rules = stopRules(run.config);
  const stopping = () => earlyStop(state.watch, rules) ?? alarmStop(state.alarms, run.config);
  const stopped = () => {
    run.takeSettings(state); // the checkpoint written next includes them
    return 'stopped' as const;
  };
  const { val_before_train, exit_after_gradient_analysis } = run.config.trainer;
  if (run.config.workbench.live_edit) run.environments.watch();
  await run.environments.cover(run.config.workbench.coverage);
  try {
    await run.tryLongest();
    if (state.step === 0 && val_before_train) run.journal.metrics(0, await validate(run, 0));
    for (;;) {
      run.takeSettings(state);
      if (!state.unvalidated && state.step >= run.config.trainer.total_training_steps) return 'finished';
      if (!state.unvalidated) {
        if (!(await run.control.gate())) return stopped();
        run.takeSettings(state, true);
        const outcome = await stepOrUndo(run, state);
        state.skipped = afterSkips(state.skipped, outcome, run.journal, state.step + 1);
        state.unvalidated = finiteOnly(outcome.metrics);
        state.watch = afterStep(state.watch, state.unvalidated);
        state.alarms = checkAlarms(run, state.alarms, state.step + 1, state.unvalidated);
        state.step++;
        await run.environments.noteCoverage(state.step);
      }
      let metrics = state.unvalidated;
      if (validationDue(run.config.trainer, state.step, stopping() !== null)) {
        metrics = await withValidation(run, state.step, metrics);
        state.watch = afterValidation(state.watch, metrics);
      }
      const stop = stopping();
      if (stop) metrics = { ...metrics, [`early_stopped/${stop.type}`]: 1 };
      delete state.unvalidated;
      ({ metrics, spent: state.spent } = withTimes(metrics, state.spent, run.journal.wallSeconds));
      run.journal.metrics(state.step, metrics);
      await run.journal.settled(); // waits here while the disk is full
      run.progress(state.step, metrics);
      refuseSkips(state.skipped, run.config);
      const due = checkpointDue(state.step, run.config.trainer.save_freq, state.skipped);
      if (due || run.control.checkpointRequested) {
        const clock = new Stopwatch();
        await run.checkpoint(state);
        state.spent.saving = clock.total;
      }
      if (stop) {
        run.journal.event('early_stop', stop.sentence, { type: stop.type });
        return 'finished';
      }
      if (exit_after_gradient_analysis && gradientsDue(run.config, state.step)) {
        run.journal.event('early_stop', 'the gradients are measured (trainer.exit_after_gradient_analysis)');
        return 'finished';
      }
    }
  } catch (error) {
    if (error instanceof RunStopped) return stopped();
    throw error;
  }
}

/** Runs a step atomically: a stop within it leaves weights, seeds, `state` and logs unchanged. */
async function stepOrUndo(run: Run, state: TrainerState): ReturnType<typeof stepOrSkip> {
  const next = { ...state };
  await run.begin();
  try {
    const outcome = await stepOrSkip(() => trainStep(run, next));
    await run.writeDiagnoses(); // also for a skipped step
    Object.assign(state, next);
    return outcome;
  } catch (error) {
    if (error instanceof RunStopped) await run.undo();
    throw error;
  }
}

/** One training step: rollout, filter, advantages, update. Returns its metrics. */
async function trainStep(run: Run, state: TrainerState): Promise<Record<string, number>> {
  const { journal, config } = run;
  const step = state.step + 1;
  const clock = new Stopwatch();

  // Rollout: env_groups prompts × group_size complete episodes under the current policy. Filter: groups whose episodes
  // all have the same score carry no signal (RAGEN-2, SNR-adaptive filtering).
  journal.update({ phase: 'rollout' });
  const rollout = await collectRollout(run, step, clock);
  const { episodes, kept, metrics } = rollout;
  Object.assign(metrics, {
    'rollout/empty_after_filter': Number(kept.length === 0),
    'rollout/empty_steps': kept.length === 0 ? state.watch.emptySteps + 1 : 0,
  });
  // Diagnosis under the policy that played, on all trainable episodes, before the filter's selection.
  const diagnosis = await diagnoseCollapse(run, state.collapse, rollout.trainable, step, clock);
  state.collapse = diagnosis.state;
  Object.assign(metrics, diagnosis.metrics, alarmMetrics(rollout.trainable, config.agent_proxy));
  const measuring = gradientsDue(config, step);
  if (measuring)
    Object.assign(metrics, await clock.time('gradient_analysis', () => measureGradients(run, state, rollout)));

  // Update; collects the per-token results of each sample for its episode record.
  const updates = !(measuring && config.trainer.gradient_analysis_only);
  const made =
    kept.length > 0 ? await update(run, state, rollout, updates, clock) : new Map<RolloutSample, TrainedTokens>();
  // From here on the step is written and can no longer be interrupted.
  if (config.trainer.log_group_rv_table) journal.groups(step, rollout.groups);
  journal.scores(step, rollout.trainable);
  await run.writeDiagnoses();
  const trained = new Set(kept);
  await clock.time('dump_rollouts', async () =>
    journal.episodes(
      'train',
      step,
      episodes.map(e =>
        trained.has(e)
          ? episodeRecord(e, {
              kept: true,
              samples: e.samples.map(sample => made.get(sample)!),
            })
          : episodeRecord(e, { kept: false }),
      ),
    ),
  );

  const tokens = tokensOf(episodes);
  const sampled = episodes.reduce((n, e) => n + sampledTokens(e), 0);
  return {
    ...metrics,
    ...clock.metrics(),
    ...timesPerToken(clock, { sampled, trained: tokensOf(kept) }),
    'perf/total_num_tokens': tokens,
    'perf/throughput': tokens / clock.total,
    'perf/time_per_step': clock.total,
    'perf/rollout_tokens_per_s': sampled / clock.seconds('gen'),
    'perf/rss_mb': process.memoryUsage.rss() / 2 ** 20,
    ...(kept.length > 0 && {
      'perf/train_tokens_per_s': tokensOf(kept) / clock.seconds('update_actor'),
    }),
  };
}

/**
 * Measures the gradients of the loss's parts by reward-std bucket: of the kept episodes and, if configured, of all of
 * them; from the step's own rollout or from a separate one. Measures only: no weights change.
 */
async function measureGradients(run: Run, state: TrainerState, rollout: RolloutCollection) {
  const { config } = run;
  const step = state.step + 1;
  const clock = new Stopwatch(); // all of it counts as analysis time
  const layout = gradientRollout(config);
  const source = layout ? await collectRollout(run, step, clock, layout) : rollout;
  const prepared = async (kept: RolloutEpisode[], keptRatio: number) =>
    kept.length > 0 ? prepare(run, { ...state }, { ...source, kept, keptRatio, metrics: {} }, clock) : null;
  const kept = await prepared(source.kept, source.keptRatio);
  const unfiltered = config.trainer.gradient_analysis_log_prefilter ? await prepared(source.trainable, 1) : null;
  return diagnoseGradients(run, step, source.groups, { kept, unfiltered });
}

/**
 * Takes the optimizer steps of critic and actor on the kept episodes, unless `updates` is false. Adds to the rollout's
 * metrics; returns the per-token results of each kept sample.
 */
async function update(
  run: Run,
  state: TrainerState,
  rollout: RolloutCollection,
  updates: boolean,
  clock: Stopwatch,
): Promise<Map<RolloutSample, TrainedTokens>> {
  const { config, journal } = run;
  const { metrics } = rollout;
  const step = state.step + 1;
  journal.update({ phase: 'update' });
  const { own, ...prepared } = await prepare(run, state, rollout, clock);
  const { samples, advantages, returns, entropies, reference, values } = prepared;

  // Optimizer steps: ppo_epochs passes over seeded mini-batches.
  const mixing = new RandomStream(deriveSeed('mini-batches', config.seed.train, step));
  if (updates && returns)
    Object.assign(
      metrics,
      await clock.time('update_critic', () => updateCritic(run, step, { ...prepared, returns }, mixing)),
    );
  if (updates && (step >= config.trainer.critic_warmup || !run.usesCritic)) {
    const results = await clock.time('update_actor', () => updateActor(run, step, prepared, mixing));
    const { 'actor/entropy': measured = results['actor/entropy'] } = metrics; // from the update if no earlier pass did
    Object.assign(metrics, results, {
      'actor/entropy': measured,
      'actor/entropy_limit': Math.log(run.model.vocabSize),
    });
  }
  const trained = new Map(
    samples.map(({ sample }, i): [RolloutSample, TrainedTokens] => [
      sample,
      {
        advantages: advantages[i],
        ...(entropies && { entropies: entropies[i] }),
        ...(run.usesReference && { reference: reference[i] }),
        ...(run.usesCritic && { values: values[i] }),
      },
    ]),
  );
  const untrained = ({ ids }: RolloutSample): TrainedTokens => ({ advantages: new Float32Array(ids.length) });
  return new Map(own.map(({ sample }) => [sample, trained.get(sample) ?? untrained(sample)]));
}

/**
 * Prepares the update of the kept episodes: samples (`own`; with RAGEN's batch adjustment some repeated), log-probs,
 * values and advantages. Adds to the rollout's metrics and updates the KL coefficient.
 */
async function prepare(
  run: Run,
  state: TrainerState,
  { trainable, kept, keptRatio, scored, baselines, metrics }: RolloutCollection,
  clock: Stopwatch,
): Promise<PreparedBatch & { own: BatchSample[] }> {
  const { config, engine } = run;
  const { ref, rollout: sampling } = config.actor_rollout_ref;
  const { algorithm } = config;
  const step = state.step + 1;

  // Training samples: one per episode if the context holds the whole chat, one per turn in a windowed context.
  const { own, order } = trainedSamples({ kept, trainable }, config, step);
  const samples = config.workbench.compat === 'ragen' ? adjustedSamplesOf(own, order) : own;
  const masks = samples.map(s => s.mask);
  const none = (): Float32Array[] => samples.map(({ ids }) => new Float32Array(ids.length));
  const budget = (episodes: number) => passBudget(config, episodes, samples.length);

  // Log-probs of the trained tokens under the policy before its update and under the reference policy.
  const score = (which: 'actor' | 'reference', episodes: number) => {
    run.follow(which === 'actor' ? 'old log-probs' : 'reference log-probs');
    return engine.score(
      which,
      samples.map(({ ids, mask }) => ({ ids, mask })),
      budget(episodes),
      sampling.temperature,
    );
  };
  const bypass = algorithm.rollout_correction.bypass_mode;
  const before = scored.size > 0 ? samples.map(({ sample }) => scored.get(sample)!) : null;
  const present =
    before || bypass
      ? {
          logprobs: before?.map(s => s.logprobs) ?? [],
          entropies: before?.map(s => s.entropies),
        }
      : await clock.time('old_log_prob', () => score('actor', sampling.log_prob_micro_batch_size_per_gpu));
  const old = bypass ? samples.map(s => s.logprobs) : present.logprobs;
  if (present.entropies) metrics['actor/entropy'] = meanOf(present.entropies, masks);
  const reference = run.usesReference
    ? await clock.time('ref', async () => (await score('reference', ref.log_prob_micro_batch_size_per_gpu)).logprobs)
    : none();
  if (run.usesReference) metrics['rollout/ref_log_prob'] = meanOf(reference, masks);
  const drawn = {
    old,
    rollout: samples.map(s => s.logprobs),
    masks: samples.map(s => s.sampled),
  };
  const correction = rolloutWeights(drawn, rolloutCorrection(config));
  if (!bypass) Object.assign(metrics, correction.metrics);
  const values = run.usesCritic
    ? await clock.time('values', () => {
        run.follow('values');
        return engine.values(
          samples.map(({ ids, estimated }) => ({ ids, mask: estimated })),
          budget(config.critic.ppo_micro_batch_size_per_gpu),
        );
      })
    : none();

  // Scores become token rewards, minus the KL penalty; the estimator turns these into advantages.
  const endAdvantages = clock.begin('adv');
  const normalized = normalizedScores(trainable, config);
  const scoreOf = new Map(trainable.map((episode, i) => [episode, normalized[i]]));
  const plain = tokenRewards(samples, episode => scoreOf.get(episode)!, config);
  const rewards = algorithm.use_kl_in_reward
    ? penalised({ samples, plain, old, reference }, state, config, metrics)
    : plain;
  const greedy = samples.map(({ episode }) => baselines.get(episode.group_id) ?? 0);
  const batch = advantageBatch(samples, { rewards, values, baselines: greedy }, config);
  const { advantages, returns } = estimators[estimatorName(config)](batch, config);
  Object.assign(metrics, applyFactors(advantages, { ...batch, corrections: correction.weights, keptRatio }, config));
  endAdvantages();
  Object.assign(metrics, describe('critic/score', plain.map(sum)), describe('critic/rewards', rewards.map(sum)));
  Object.assign(metrics, describe('critic/advantages', numbersWhere(advantages, masks)));
  Object.assign(metrics, lengthsOf(samples, sampling.max_model_len - sampling.response_length));

  const positions = samples === own ? order : Array.from(samples.keys());
  const { entropies } = present;
  return {
    own,
    samples,
    old,
    reference,
    values,
    advantages,
    order: positions,
    ...(entropies && { entropies }),
    ...(returns && { returns }),
  };
}

/** Subtracts the KL penalty from the rewards (`algorithm.use_kl_in_reward`), then updates its coefficient. */
function penalised(
  rows: Record<'plain' | 'old' | 'reference', readonly Float32Array[]> & {
    samples: readonly BatchSample[];
  },
  state: TrainerState,
  { algorithm }: RunConfig,
  metrics: Record<string, number>,
): Float32Array[] {
  const beta = state.klCoefficient;
  const found = rows.samples.map(({ mask }, i) =>
    klInReward(
      {
        rewards: rows.plain[i],
        logprobs: rows.old[i],
        ref_logprobs: rows.reference[i],
        mask,
      },
      algorithm.kl_penalty,
      beta,
    ),
  );
  const observed = found.reduce((total, { meanKl }) => total + meanKl, 0) / found.length;
  state.klCoefficient = nextKlCoefficient(algorithm.kl_ctrl, beta, observed, found.length);
  Object.assign(metrics, {
    'actor/reward_kl_penalty': observed,
    'actor/reward_kl_penalty_coeff': beta,
  });
  return found.map(({ rewards }) => rewards);
}

/** The batch as estimators see it. */
interface AdvantageBatch {
  /** Per sample: sum of its rewards, prompt group, and episode; an episode counts once in its group's statistics. */
  scores: readonly number[];
  groups: readonly number[];
  episodes: readonly number[];
  masks: readonly Uint8Array[];
  /** Score of the greedy episode of each sample's group; 0 if the estimator needs none. */
  baselines: readonly number[];
  /** For estimators over sequences: one row per sample, or with turn scores one row per complete episode. */
  ahead(estimate: (rows: EstimatedSequence[]) => Estimate): Estimate;
  /** For estimators with one advantage per turn. */
  byTurn(estimate: (turns: { rewards: number[][]; groups: number[] }) => Float32Array[]): Float32Array[];
}

interface Estimate {
  advantages: Float32Array[];
  /** The critic's targets. */
  returns?: Float32Array[];
}
type Estimator = (batch: AdvantageBatch, config: RunConfig) => Estimate;
type EstimatorName = RunConfig['algorithm']['adv_estimator'] | 'gae_by_turn' | 'grpo_by_turn';

function estimatorName({ algorithm, agent_proxy }: RunConfig): EstimatorName {
  const { adv_estimator: name, bi_level_gae } = algorithm;
  if (name === 'gae') return bi_level_gae ? 'gae_by_turn' : 'gae';
  return name === 'grpo' && agent_proxy.use_turn_scores ? 'grpo_by_turn' : name;
}

function advantageBatch(
  samples: readonly BatchSample[],
  {
    rewards,
    values,
    baselines,
  }: Record<'rewards' | 'values', readonly Float32Array[]> & Pick<AdvantageBatch, 'baselines'>,
  { agent_proxy }: RunConfig,
): AdvantageBatch {
  const sequences = samples.map(({ mask, estimated: advantageMask, turnEnds }, i) => {
    return {
      rewards: rewards[i],
      values: values[i],
      mask,
      advantageMask,
      turnEnds,
    };
  });
  const episodes = samplesByEpisode(samples);
  return {
    scores: rewards.map(sum),
    groups: samples.map(s => s.episode.group_id),
    episodes: samples.map(s => s.countsAs),
    masks: samples.map(s => s.mask),
    baselines,
    ahead: estimate =>
      overJoined(sequences, agent_proxy.use_turn_scores ? episodes : samples.map((_, i) => [i]), estimate),
    byTurn: estimate =>
      overJoined(sequences, episodes, rows => {
        const turns = {
          rewards: rows.map(({ rewards, turnEnds }) => rewardsByTurn(rewards, turnEnds)),
          groups: episodes.map(([first]) => samples[first].episode.group_id),
        };
        const advantages = estimate(turns);
        return {
          advantages: rows.map((row, e) => spreadOverTurns(advantages[e], row.turnEnds, row.mask)),
        };
      }).advantages,
  };
}

/** Sum of the rewards of each turn: from the token after the previous turn's end to its own end. */
const rewardsByTurn = (rewards: Float32Array, turnEnds: readonly number[]): number[] =>
  turnEnds.map((end, turn) => sum(rewards.subarray(turn === 0 ? 0 : turnEnds[turn - 1] + 1, end + 1)));

const sum = (row: Float32Array): number => row.reduce((total, x) => total + x, 0);

const tokensOf = (episodes: readonly RolloutEpisode[]): number =>
  episodes.reduce((n, e) => n + e.samples.reduce((m, { ids }) => m + ids.length, 0), 0);
