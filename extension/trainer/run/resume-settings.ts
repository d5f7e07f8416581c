// Settings that a resume may change (`ragen resume RUN trainer.total_training_steps=200`): the keys that may also
// change during training. New values apply from the step after the checkpoint and are recorded as events, as with
// `ragen set`; the signed manifest is not changed. A change of any other key is rejected, because finished steps depend
// on its old value.
import { settingKeys } from '../../run-data/changeable-settings';
import { UserError } from '../../common/user-error';
import { shown } from '../config/config-error';
import { PendingSettings } from '../live/pending-settings';
import { onlyEvaluates, readableConfig } from './stored-config';
import type { RunFolder } from '../store/run-folder';

/** Reasons why keys cannot change. The first pattern that matches a key determines the reason. */
const reasons: readonly [prefix: RegExp, reason: string][] = [
  [
    /^(model_path|lora\b|actor_rollout_ref\.model|critic\.model|workbench\.(base|rollout)_quantization)/,
    'its checkpoints contain weights of its first model',
  ],
  [
    /^(es_manager|custom_envs|seed|agent_proxy|actor_rollout_ref\.rollout)\b/,
    'its episodes so far were played with the old value',
  ],
  [
    /^(algorithm|critic|actor_rollout_ref|rollout_manager|reward_model)\b/,
    'its weights so far were trained with the old value',
  ],
];

/**
 * Parses `key=value` settings.
 * @throws UserError if the value of a key cannot change in run `id`, or if a value is not a number
 */
export function resumeSettings(overrides: readonly string[], id: string): Record<string, number> {
  return Object.fromEntries(
    overrides.map(text => {
      const [, key, value] = /^([^=\s]+)=(.*)$/s.exec(text) ?? [];
      if (key === undefined) throw new UserError(`${shown(text)} is not a setting: write key=value`);
      if (!settingKeys.includes(key)) {
        const reason = reasons.find(([prefix]) => prefix.test(key))?.[1] ?? 'its steps so far used the old value';
        throw new UserError(
          `${key} cannot change in run ${id}, since ${reason}: start a new run with ragen train --from ${id} ${text}, or change one of ${settingKeys.join(', ')}`,
        );
      }
      const number = value.trim() === '' ? Number.NaN : Number(value);
      if (!Number.isFinite(number)) throw new UserError(`${key} is ${shown(value)}: use a number`);
      return [key, number];
    }),
  );
}

/**
 * Returns a warning if a resume changes the number of steps although the learning rate has been decaying over the old
 * number of steps; otherwise returns null. The resumed run then gives other results than a run that was started with
 * the new number of steps.
 */
export function scheduleNote(folder: RunFolder, values: Readonly<Record<string, number>>): string | null {
  const steps = values['trainer.total_training_steps'];
  if (steps === undefined) return null;
  const config = readableConfig(folder);
  const { actor } = config.actor_rollout_ref;
  if (steps === config.trainer.total_training_steps) return null;
  const optimizers = config.algorithm.adv_estimator === 'gae' ? [actor.optim, config.critic.optim] : [actor.optim];
  const falling = optimizers.find(({ lr_scheduler_type }) => lr_scheduler_type !== 'constant');
  return (
    (falling &&
      `so far, the learning rate followed a ${falling.lr_scheduler_type} schedule over ${falling.total_training_steps} steps; a run configured with ${steps} steps from the start would have other learning rates`) ??
    null
  );
}

/** Throws a UserError if the run cannot change these settings after step `step`. Writes nothing. */
export function refuseSettings(folder: RunFolder, step: number, values: Readonly<Record<string, number>>): void {
  if (Object.keys(values).length === 0) return;
  if (step === 0)
    throw new UserError(
      `run ${folder.id} has no checkpoint yet that could store new settings: start another run with ragen train --from ${folder.id} ${Object.entries(
        values,
      )
        .map(([key, value]) => `${key}=${value}`)
        .join(' ')}`,
    );
  if (onlyEvaluates(folder.manifest.config))
    throw new UserError(
      `run ${folder.id} is an evaluation, which has no settings: resume it without ${Object.keys(values).join(', ')}`,
    );
  const settings = new PendingSettings(readableConfig(folder));
  settings.apply(step + 1, false);
  settings.request(values, true);
}
