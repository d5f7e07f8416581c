// Validation: plays the validation groups, with the same seeds in every validation, and writes their episodes.
import { appendAll } from '../../common/lists';
import type { RunConfig } from '../config/schema';
import type { Run } from '../run/run';
import { episodeRecord } from '../rollout/episode-record';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { measureRollout } from '../rollout/rollout-metrics';
import { asksForThoughts } from '../rollout/turn-protocol';
import { metricsOfRollout, validationSuccess } from './metric-statistics';

/** Plays `trainer.validation_steps` batches and returns the metrics over all their episodes. */
export async function runValidation(run: Run, step: number): Promise<Record<string, number>> {
  const { trainer, es_manager } = run.config;
  const before = run.journal.status.phase;
  run.journal.update({ phase: 'validation' });
  const episodes: RolloutEpisode[] = [];
  await run.rollouts.exclusively(async () => {
    for (let batch = 0; batch < trainer.validation_steps; batch++)
      appendAll(episodes, (await run.batches.rollout('val', step, batch)).episodes);
  });
  run.journal.episodes(
    'val',
    step,
    episodes.map(e => episodeRecord(e)),
  );
  const measured = measureRollout(episodes, es_manager.val.group_size, asksForThoughts(run.config));
  const metrics = metricsOfRollout({ metrics: measured }, 'val-env');
  run.journal.update({ phase: before });
  run.showValidation(validationSuccess(metrics));
  return metrics;
}

/**
 * Whether step `step` ends with a validation: every `test_freq` steps, in the last step of the run, and at an early
 * stop. Never if `test_freq` is 0 or -1.
 */
export const validationDue = (
  { test_freq, total_training_steps }: Pick<RunConfig['trainer'], 'test_freq' | 'total_training_steps'>,
  step: number,
  stopsEarly = false,
): boolean => test_freq > 0 && (step % test_freq === 0 || step === total_training_steps || stopsEarly);

/**
 * Runs a validation. Returns the metrics of the step and the metrics of the validation in one object. The time of the
 * validation is added to the time of the step.
 */
export async function withValidation(
  run: Run,
  step: number,
  metrics: Record<string, number>,
): Promise<Record<string, number>> {
  const clock = run.timeline.stopwatch(step);
  const validation = await clock.time('testing', () => runValidation(run, step));
  const seconds = metrics['timing_s/step'] + clock.total;
  return {
    ...metrics,
    ...validation,
    'timing_s/testing': clock.seconds('testing'),
    'timing_s/step': seconds,
    'perf/time_per_step': seconds,
    'perf/throughput': metrics['perf/total_num_tokens'] / seconds,
  };
}
