// StarPO (State-Thinking-Actions-Reward Policy Optimisation; RAGEN, arXiv 2504.20073, §3), in reading order:
// - play groups of complete episodes
// - keep the groups whose episodes have different scores
// - compute an advantage for every sampled token
// - take clipped policy-gradient steps on exactly the sampled token ids
// The folder algorithms/ contains the computations as pure functions; engine/ runs the model. A finished step writes its
// episodes, its metrics line and, if one is due, a checkpoint. A step that a stop interrupts writes nothing.
import { applyFactors } from './advantage-factors';
import { rolloutWeights } from '../../algorithms/rollout-correction';
import { diagnoseCollapse } from './collapse-diagnosis';
import { collectRollout, normalizedScores } from './rollout-collection';
import type { RolloutCollection } from './rollout-collection';
import { rolloutCorrection } from '../config/rollout-correction-options';
import { afterStep, afterValidation, earlyStop, stopRules } from './early-stops';
import { RandomStream } from '../../engine/sampling/random-stream';
import { RunStopped } from '../../engine/run-stopped';
import { diagnoseGradients, gradientRollout, gradientsDue } from './gradient-diagnosis';
import { updateActor, updateCritic } from './optimizer-steps';
import type { PreparedBatch } from './optimizer-steps';
import type { Run } from '../run/run';
import type { TrainedTokens } from '../rollout/episode-record';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import type { RolloutSample } from '../rollout/rollout-sample';
import type { TrainerState } from '../run/trainer-state';
import { deriveSeed } from '../rollout/seeds';
import { describe, finiteOnly, lengthsOf, meanOf, numbersWhere } from './metric-statistics';
import { afterSkips, refuseSkips, stepOrSkip } from './skipped-steps';
import { checkpointDue } from './checkpoint-due';
import { curriculumGroups, followCurriculum } from './curriculum';
import { withTimes } from './step-times';
import { Stopwatch } from './stopwatch';
import { adjustedSamplesOf, samplesOf, tokenRewards, trainedSamples } from './training-batch';
import type { BatchSample } from './training-batch';
import { runValidation, validationDue, withValidation } from './validation';
import { alarmStop, checkAlarms } from './alarm-monitor';
import { measuredWith, textMetrics } from '../diagnostics/built-in-metrics';
import { trainingRecords, throughput, trainedTokens } from './trained-episodes';
import { oldLogprobs, referenceLogprobs, oldValues, teacherLogprobs } from './batch-scores';
import { addTeacherAdvantages } from './teacher-advantages';
import { penalisedRewards } from './kl-penalty';
import { creditOf } from './credit';
import { advantageBatch, estimatorSettings, sum, tokenAdvantages } from './advantage-batch';
import { builtInEstimators, estimatorName } from './built-in-estimators';
import { isPluginPath } from '../config/plugin-path';
import { estimateWith } from '../plugins/checked-estimate';
import { pluginRules } from '../plugins/plugin-alarms';
import { pluginMetrics } from '../plugins/plugin-metrics';

/** Trains until the last step, an early stop, or a stop request. After an error, all written steps stay on disk. */
export async function train(run: Run, state: TrainerState): Promise<'finished' | 'stopped'> {
  const rules = stopRules(run.config);
  const alarmOf = (path: string) => run.plugins.set.plugin(path).description.name;
  const stopping = () => earlyStop(state.watch, rules) ?? alarmStop(state.alarms, run.config, alarmOf);
  const stopped = () => {
    run.applySettings(state); // the final checkpoint includes the applied changes
    return 'stopped' as const;
  };
  const { val_before_train, exit_after_gradient_analysis } = run.config.trainer;
  if (run.config.workbench.live_edit) {
    run.environments.watch();
    run.plugins.watch();
  }
  await run.environments.cover(run.config.workbench.coverage);
  try {
    await run.tryLongest();
    if (state.step === 0 && val_before_train)
      run.journal.metrics(0, await run.timeline.time(0, 'testing', () => runValidation(run, 0)));
    run.timeline.endStep(state.step);
    for (;;) {
      run.applySettings(state);
      if (!state.unvalidated && state.step >= run.config.trainer.total_training_steps) return 'finished';
      if (!state.unvalidated) {
        if (!(await run.control.gate())) return stopped();
        run.applySettings(state, true);
        run.plugins.apply(state.step + 1);
        const outcome = await stepOrUndo(run, state);
        state.skipped = afterSkips(state.skipped, outcome, run.journal, state.step + 1);
        state.unvalidated = finiteOnly(outcome.metrics);
        state.watch = afterStep(state.watch, state.unvalidated);
        const own = await pluginRules(run.plugins, state.alarms, state.unvalidated);
        state.alarms = checkAlarms(run, state.alarms, state.step + 1, state.unvalidated, own);
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
      await run.journal.settled(); // blocks while the disk is full
      run.progress(state.step, metrics);
      refuseSkips(state.skipped, run.config);
      const due = checkpointDue(state.step, run.config.trainer.save_freq, state.skipped);
      if (due || run.control.checkpointRequested) {
        await run.timeline.secure(state.step);
        const clock = run.timeline.stopwatch(state.step);
        await clock.time('save_checkpoint', () => run.checkpoints.write(state));
        state.spent.saving = clock.total;
      }
      run.timeline.endStep(state.step);
      if (stop) {
        run.journal.event('early_stop', stop.sentence, { type: stop.type });
        return 'finished';
      }
      if (exit_after_gradient_analysis && gradientsDue(run.config, state.step)) {
        run.journal.event(
          'early_stop',
          'the run ends because its gradients have been measured (trainer.exit_after_gradient_analysis)',
        );
        return 'finished';
      }
    }
  } catch (error) {
    if (error instanceof RunStopped) return stopped();
    throw error;
  } finally {
    await run.rollouts.discard();
  }
}

/**
 * Runs a step. If the run is stopped during the step, weights and seeds are restored, and `state` and logs stay
 * unchanged.
 */
async function stepOrUndo(run: Run, state: TrainerState): ReturnType<typeof stepOrSkip> {
  const next = { ...state };
  await run.begin();
  try {
    const outcome = await stepOrSkip(() => trainStep(run, next));
    await run.writeDiagnoses(); // a skipped step has not written its diagnoses
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
  const clock = run.timeline.stopwatch(step);

  // Rollout: env_groups prompts × group_size complete episodes under the current policy, or under an older policy if
  // rollouts are sampled ahead (workbench.max_staleness). Filter: keep the groups whose episodes have different scores,
  // because the other groups carry no signal (RAGEN-2, SNR-adaptive filtering).
  journal.update({ phase: 'rollout' });
  const rollout = await run.rollouts.next(step, clock, curriculumGroups(config, state.curriculum));
  const { episodes, kept, metrics } = rollout;
  run.environments.noteRan(step, episodes);
  Object.assign(metrics, {
    'rollout/empty_after_filter': Number(kept.length === 0),
    'rollout/empty_steps': kept.length === 0 ? state.watch.emptySteps + 1 : 0,
  });
  // Diagnose collapse with the policy that sampled the rollout. Use all trainable episodes, including those that the
  // filter dropped.
  const diagnosis = await diagnoseCollapse(run, state.collapse, rollout.trainable, step, clock);
  state.collapse = diagnosis.state;
  Object.assign(metrics, diagnosis.metrics);
  Object.assign(metrics, measuredWith(textMetrics, { ...rollout.measured, metrics }));
  const measuring = gradientsDue(config, step);
  if (measuring)
    Object.assign(metrics, await clock.time('gradient_analysis', () => measureGradients(run, state, rollout)));

  // Update the weights. For every token of the kept episodes, collect the results that the episode records contain.
  const updates = !(measuring && config.trainer.gradient_analysis_only);
  const made =
    kept.length > 0 ? await update(run, state, rollout, updates, clock) : new Map<RolloutSample, TrainedTokens>();
  // From here on, the step writes its results, and a stop no longer interrupts the step.
  const curriculum = followCurriculum(run, state.curriculum, rollout.trainable);
  state.curriculum = curriculum.state;
  if (config.trainer.log_group_rv_table) journal.groups(step, rollout.groups);
  journal.scores(step, rollout.trainable);
  await run.writeDiagnoses();
  await clock.time('dump_rollouts', async () => journal.episodes('train', step, trainingRecords(episodes, kept, made)));

  const measured = {
    ...{ ...metrics, ...curriculum.metrics, ...throughput(clock, episodes, kept) },
    ...{ ...run.systemUse.metrics(), ...run.rollouts.stepMetrics(clock.total) },
  };
  return { ...measured, ...(await pluginMetrics(run.plugins, { ...rollout.measured, metrics: measured })) };
}

/**
 * Sorts groups into buckets by their reward std, and measures the gradient of each part of the loss for each bucket.
 * Measures these gradients for the kept episodes and, if configured, also for all trainable episodes. The episodes come
 * from the step's own rollout or, if configured, from a separate rollout. Changes no weights.
 */
async function measureGradients(run: Run, state: TrainerState, rollout: RolloutCollection) {
  const { config } = run;
  const step = state.step + 1;
  const clock = new Stopwatch(); // keeps these phases out of the step's times
  const layout = gradientRollout(config);
  const source = layout ? await collectRollout(run, step, clock, { aside: layout }) : rollout;
  const prepared = async (kept: RolloutEpisode[], keptRatio: number) =>
    kept.length > 0 ? prepare(run, { ...state }, { ...source, kept, keptRatio, metrics: {} }, clock) : null;
  const kept = await prepared(source.kept, source.keptRatio);
  const unfiltered = config.trainer.gradient_analysis_log_prefilter ? await prepared(source.trainable, 1) : null;
  return diagnoseGradients(run, step, source.groups, { kept, unfiltered });
}

/**
 * Trains critic and actor on the kept episodes; if `updates` is false, only prepares the batch. Adds metrics to
 * `rollout.metrics`. For each sample of the kept groups, returns the results per token.
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
  const { returns } = prepared;

  // Optimizer steps: ppo_epochs epochs over mini-batches in a seeded order.
  const mixing = new RandomStream(deriveSeed('mini-batches', config.seed.train, step));
  if (updates && returns)
    Object.assign(
      metrics,
      await clock.time('update_critic', () => updateCritic(run, step, { ...prepared, returns }, mixing)),
    );
  if (updates && (step >= config.trainer.critic_warmup || !run.usesCritic)) {
    const results = await clock.time('update_actor', () => updateActor(run, step, prepared, mixing));
    const { 'actor/entropy': measured = results['actor/entropy'] } = metrics; // fallback: the entropy during the update
    Object.assign(metrics, results, {
      'actor/entropy': measured,
      'actor/entropy_limit': Math.log(run.model.vocabSize),
    });
  }
  return trainedTokens(run, own, prepared);
}

/**
 * Computes everything that training on the kept episodes needs: samples, log-probs, values and advantages. In the
 * result, `own` contains each sample once. `samples` may repeat or omit samples because of RAGEN's batch adjustment.
 * Adds metrics to the rollout's metrics and updates the KL coefficient.
 */
async function prepare(
  run: Run,
  state: TrainerState,
  { trainable, kept, keptRatio, scored, baselines, metrics }: RolloutCollection,
  clock: Stopwatch,
): Promise<PreparedBatch & { own: BatchSample[] }> {
  const { config } = run;
  const { rollout: sampling } = config.actor_rollout_ref;
  const { algorithm } = config;
  const step = state.step + 1;

  // Training samples: one per episode if the context contains the complete chat, one per turn in a windowed context.
  const { own, order } = trainedSamples({ kept, trainable }, config, step);
  const samples = config.workbench.compat === 'ragen' ? adjustedSamplesOf(own, order) : own;
  const masks = samples.map(s => s.mask);
  const trained = samplesOf(samples, kept);
  const ofTrained = <Row>(rows: readonly Row[]): Row[] => trained.map(index => rows[index]);

  // Log-probs of the trained tokens, under the policy before its update and under the reference policy.
  const { old, entropies, squares } = await oldLogprobs(run, samples, scored, clock);
  if (entropies) metrics['actor/entropy'] = meanOf(ofTrained(entropies), ofTrained(masks));
  const reference = await referenceLogprobs(run, samples, clock);
  if (run.usesReference) metrics['rollout/ref_log_prob'] = meanOf(ofTrained(reference), ofTrained(masks));
  const drawn = {
    old,
    rollout: samples.map(s => s.logprobs),
    masks: samples.map(s => s.sampled),
  };
  const correction = rolloutWeights(drawn, rolloutCorrection(config));
  if (!algorithm.rollout_correction.bypass_mode) Object.assign(metrics, correction.metrics);
  const values = await oldValues(run, samples, clock);
  const teacher = await teacherLogprobs(run, samples, clock);

  // Convert scores to token rewards, subtract the KL penalty, and estimate advantages.
  const endAdvantages = clock.begin('adv');
  const plain = tokenRewards(samples, normalizedScores(trainable, config), config);
  const rewards = algorithm.use_kl_in_reward
    ? penalisedRewards({ samples, plain, old, reference }, state, config, metrics)
    : plain;
  const greedy = samples.map(({ episode }) => baselines.get(episode.group_id) ?? 0);
  const batch = advantageBatch(samples, { rewards, values, logprobs: old, squares, baselines: greedy }, config);
  const name = estimatorName(config);
  const settings = estimatorSettings(config, step);
  const estimate = isPluginPath(name)
    ? await estimateWith(run.plugins.set.plugin(name), batch, settings)
    : builtInEstimators[name].estimate(batch, settings);
  const { advantages, returns, targets } = tokenAdvantages(batch, estimate);
  const weights = await creditOf(run, samples, step);
  const factors = { ...batch, corrections: correction.weights, keptRatio, credit: weights };
  Object.assign(metrics, applyFactors(advantages, factors, config));
  const { distillation } = config.workbench;
  if (teacher && distillation) {
    const input = { samples, old, teacher, corrections: correction.weights };
    Object.assign(metrics, addTeacherAdvantages(advantages, input, distillation));
  }
  endAdvantages();
  Object.assign(metrics, describe('critic/score', ofTrained(plain).map(sum)));
  Object.assign(metrics, describe('critic/rewards', ofTrained(rewards).map(sum)));
  Object.assign(metrics, describe('critic/advantages', numbersWhere(ofTrained(advantages), ofTrained(masks))));
  Object.assign(metrics, lengthsOf(ofTrained(samples), sampling.max_model_len - sampling.response_length));

  const positions = samples === own ? order : Array.from(samples.keys());
  return {
    own,
    samples,
    trained,
    old,
    reference,
    values,
    advantages,
    order: positions,
    ...(entropies && { entropies }),
    ...(teacher && { teacher }),
    ...(returns && { returns }),
    ...(targets && { targets }),
  };
}
