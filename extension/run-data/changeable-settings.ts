// Settings that may change during a run, and the configuration in effect: the manifest's configuration with the run's
// `setting` events applied in order. A resume removes the events after its checkpoint and thereby undoes later changes.
// Used by trainer, terminal and editor. Values are validated by the trainer against the configuration schema.
import type { RunEvent, SettingChange } from './run-events';
import { settingChangeSchema } from './run-events';

type Config = Readonly<Record<string, unknown>>;

/** The changeable settings by RAGEN key, with the condition under which they have an effect. */
const settings: readonly { key: string; needs?: { key: string; value: unknown } }[] = [
  { key: 'actor_rollout_ref.actor.optim.lr' },
  { key: 'critic.optim.lr', needs: { key: 'algorithm.adv_estimator', value: 'gae' } },
  { key: 'actor_rollout_ref.actor.entropy_coeff' },
  { key: 'actor_rollout_ref.actor.kl_loss_coef', needs: { key: 'actor_rollout_ref.actor.use_kl_loss', value: true } },
  { key: 'algorithm.kl_ctrl.kl_coef', needs: { key: 'algorithm.use_kl_in_reward', value: true } },
  { key: 'actor_rollout_ref.rollout.temperature' },
  { key: 'actor_rollout_ref.rollout.rollout_filter_value' },
  { key: 'trainer.total_training_steps' },
  { key: 'trainer.test_freq' },
  { key: 'trainer.save_freq' },
];

export const settingKeys: readonly string[] = settings.map(({ key }) => key);

/** Returns the settings that have an effect under a configuration, with their values. */
export function changeable(config: Config): { key: string; value: number }[] {
  return settings.flatMap(({ key, needs }) => {
    const value = valueAt(config, key);
    const idle = needs !== undefined && valueAt(config, needs.key) !== needs.value;
    return idle || typeof value !== 'number' ? [] : [{ key, value }];
  });
}

/**
 * Returns the reason why a setting has no effect under a configuration, in the form `key is value`. Returns undefined
 * if the setting has an effect.
 */
export function idleBecause(config: Config, key: string): string | undefined {
  const needs = settings.find(setting => setting.key === key)?.needs;
  const value = needs && valueAt(config, needs.key);
  return needs && value !== needs.value ? `${needs.key} is ${String(value)}` : undefined;
}

/**
 * Returns the configuration with one setting changed. If the number of steps changes and the learning-rate schedule has
 * the run's length, the schedule also gets the new length.
 */
export function withSetting(config: Config, { key, to }: Pick<SettingChange, 'key' | 'to'>): Record<string, unknown> {
  const changed = structuredClone(config) as Record<string, unknown>;
  if (key === 'trainer.total_training_steps')
    for (const schedule of ['actor_rollout_ref.actor.optim', 'critic.optim'].map(at => `${at}.total_training_steps`))
      if (valueAt(config, schedule) === valueAt(config, key)) setAt(changed, schedule, to);
  setAt(changed, key, to);
  return changed;
}

/** Returns the configuration in effect after the given events of a run that started with `config`. */
export function configInEffect(config: Config, events: Iterable<RunEvent>): Config {
  let now = config;
  for (const { kind, data } of events) {
    const change = kind === 'setting' ? settingChangeSchema.safeParse(data).data : undefined;
    if (change && settingKeys.includes(change.key)) now = withSetting(now, change);
  }
  return now;
}

/** Returns the value at a dotted key, or undefined. */
export function valueAt(config: unknown, key: string): unknown {
  let at: unknown = config;
  for (const part of key.split('.'))
    at = typeof at === 'object' && at !== null && Object.hasOwn(at, part) ? (at as Config)[part] : undefined;
  return at;
}

/** Sets the value of an existing dotted key; ignores unknown keys. */
function setAt(config: Record<string, unknown>, key: string, value: number): void {
  const at = key.lastIndexOf('.');
  const map = at < 0 ? config : valueAt(config, key.slice(0, at));
  const name = key.slice(at + 1);
  if (typeof map === 'object' && map !== null && Object.hasOwn(map, name))
    (map as Record<string, unknown>)[name] = value;
}
