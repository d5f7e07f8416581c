// Scores of a batch before its update: log-probs under the policy and under the reference policy, and values of the
// critic. Each sample has one array of each kind, with one entry per token. Without a reference policy, the reference
// log-probs are zeros; without a critic, the values are zeros.
import type { RolloutCollection } from './rollout-collection';
import type { Run } from '../run/run';
import type { Stopwatch } from './stopwatch';
import type { BatchSample } from './training-batch';
import { passBudget } from '../run/pass-budget';
import { usesSquares } from '../plan/memory-input';

const zeros = (samples: readonly BatchSample[]): Float32Array[] =>
  samples.map(({ ids }) => new Float32Array(ids.length));

/**
 * Computes log-probs and entropies of the trained tokens under a policy. A pass has at most as many tokens as
 * `episodes` full-length episodes (passBudget).
 */
function scoreSamples(
  run: Run,
  samples: readonly BatchSample[],
  which: 'actor' | 'reference',
  episodes: number,
  withSquares = false,
) {
  const { config, engine } = run;
  run.follow(which === 'actor' ? 'old log-probs' : 'reference log-probs');
  return engine.score(
    which,
    samples.map(({ ids, mask, shows }) => ({ ids, mask, shows })),
    passBudget(config, episodes, samples.length),
    config.actor_rollout_ref.rollout.temperature,
    withSquares,
  );
}

/**
 * Returns the log-probs and entropies of the trained tokens under the policy before its update. With `bypass_mode`, the
 * sampler's log-probs are returned. Log-probs and entropies that the rollout filter has already computed (`scored`) are
 * reused. With `bypass_mode`, entropies are absent unless the filter has computed them. For an estimator that needs them,
 * `squares` contains the sums of squared probabilities.
 */
export async function oldLogprobs(
  run: Run,
  samples: readonly BatchSample[],
  scored: RolloutCollection['scored'],
  clock: Stopwatch,
): Promise<{ old: Float32Array[]; entropies?: Float32Array[]; squares?: Float32Array[] }> {
  const { algorithm, actor_rollout_ref } = run.config;
  const { rollout: sampling } = actor_rollout_ref;
  const bypass = algorithm.rollout_correction.bypass_mode;
  const before = scored.size > 0 ? samples.map(({ sample }) => scored.get(sample)!) : null;
  const withSquares = usesSquares(run.config);
  const present =
    !withSquares && (before || bypass)
      ? {
          logprobs: before?.map(s => s.logprobs) ?? [],
          entropies: before?.map(s => s.entropies),
          squares: undefined,
        }
      : await clock.time('old_log_prob', () =>
          scoreSamples(run, samples, 'actor', sampling.log_prob_micro_batch_size_per_gpu, withSquares),
        );
  const { logprobs, entropies, squares } = present;
  return { old: bypass ? samples.map(s => s.logprobs) : logprobs, entropies, squares };
}

/** Returns the log-probs under the reference policy, in nats. */
export async function referenceLogprobs(
  run: Run,
  samples: readonly BatchSample[],
  clock: Stopwatch,
): Promise<Float32Array[]> {
  const { ref } = run.config.actor_rollout_ref;
  return run.usesReference
    ? await clock.time(
        'ref',
        async () => (await scoreSamples(run, samples, 'reference', ref.log_prob_micro_batch_size_per_gpu)).logprobs,
      )
    : zeros(samples);
}

/**
 * Returns the log-probs of the trained tokens under the teacher, in nats; undefined without a teacher.
 * @throws UserError if the teacher cannot score them
 */
export async function teacherLogprobs(
  run: Run,
  samples: readonly BatchSample[],
  clock: Stopwatch,
): Promise<Float32Array[] | undefined> {
  const { teacher, journal } = run;
  if (!teacher) return undefined;
  return clock.time('teacher', () =>
    teacher.logprobs(samples, (done, of) =>
      journal.progress(done / of, `teacher's log-probs: pass ${done + 1} of ${of}`),
    ),
  );
}

/** Returns the critic's values at the tokens for which advantages are estimated. */
export async function oldValues(run: Run, samples: readonly BatchSample[], clock: Stopwatch): Promise<Float32Array[]> {
  const { config, engine } = run;
  return run.usesCritic
    ? await clock.time('values', () => {
        run.follow('values');
        return engine.values(
          samples.map(({ ids, estimated, shows }) => ({ ids, mask: estimated, shows })),
          passBudget(config, config.critic.ppo_micro_batch_size_per_gpu, samples.length),
        );
      })
    : zeros(samples);
}
