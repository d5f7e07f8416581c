// The configuration of a run in progress, and the pending changes of its settings. A requested change is validated
// immediately against the schema and the rules that apply to every configuration. The change takes effect at the
// beginning of the next step, so a step uses a single configuration.
import type { SettingChange } from '../../run-data/run-events';
import { idleBecause, settingKeys, valueAt, withSetting } from '../../run-data/changeable-settings';
import { nearest } from '../../common/suggest';
import { UserError } from '../../common/user-error';
import { ConfigError } from '../config/config-error';
import { overrideConfig } from '../config/load-config';
import type { RunConfig } from '../config/schema';

/** The result of a change request. */
export interface RequestedChange {
  /** Number of the first step that uses the change. */
  step: number;
  /** The requested values that differ from the current values. */
  changes: SettingChange[];
}

type Plain = Record<string, unknown>;

export class PendingSettings {
  private pending: SettingChange[] = [];
  /** The first step that would use a change requested now. */
  private next = 1;

  constructor(private current: RunConfig) {}

  /** The configuration of the current step. */
  get config(): RunConfig {
    return this.current;
  }

  /**
   * Requests new values for settings; the keys of `values` are RAGEN's. With `checkOnly`, the values are only
   * validated. Pending changes of other keys stay pending.
   * @throws UserError if a value is invalid or its key cannot change during training
   */
  request(values: Readonly<Record<string, unknown>>, checkOnly = false): RequestedChange {
    const config: Plain = this.current;
    const entries = Object.entries(values);
    if (entries.length === 0) throw new UserError(`no setting is given: name one of ${settingKeys.join(', ')}`);
    const wanted = entries.map(([key, to]) => {
      refuseUnless(key, config);
      return { key, from: valueAt(config, key) as number, to: to as number };
    });
    const kept = this.pending.filter(({ key }) => !Object.hasOwn(values, key));
    const all = [...kept, ...wanted];
    const { trainer } = checked(all.reduce(withSetting, config), Object.keys(values));
    if (trainer.total_training_steps < this.next)
      throw new UserError(
        Object.hasOwn(values, 'trainer.total_training_steps')
          ? `trainer.total_training_steps is ${trainer.total_training_steps}, but a change would take effect only from step ${this.next}: use ${this.next} or more, or stop the run`
          : `the run is in its last step, so the change would never apply: raise trainer.total_training_steps as well`,
      );
    if (!checkOnly) this.pending = all.filter(({ from, to }) => from !== to);
    return { step: this.next, changes: wanted.filter(({ from, to }) => from !== to) };
  }

  /**
   * Applies the pending changes between two steps and returns them.
   * @param step number of the upcoming step
   * @param begins whether step `step` begins now; if so, changes requested after this call apply from step `step` + 1
   */
  apply(step: number, begins: boolean): SettingChange[] {
    const applied = this.pending;
    this.pending = [];
    this.next = begins ? step + 1 : step;
    if (applied.length > 0) this.current = checked(applied.reduce(withSetting, this.current));
    return applied;
  }
}

function refuseUnless(key: string, config: Plain): void {
  if (!settingKeys.includes(key)) {
    const near = settingKeys.find(known => known.endsWith(`.${key}`)) ?? nearest(key, settingKeys);
    const remedy = near === undefined ? `change one of ${settingKeys.join(', ')}` : `did you mean ${near}?`;
    throw new UserError(`${key} cannot change during training: ${remedy}`);
  }
  const idle = idleBecause(config, key);
  if (idle !== undefined)
    throw new UserError(`${key} has no effect in this run, since ${idle}: set both keys in a new run`);
}

/**
 * Validates a configuration. If the configuration has problems, throws a UserError with the first problem that concerns
 * one of `keys`. If no problem concerns these keys, the error has the first of all problems.
 */
function checked(config: Plain, keys: readonly string[] = []): RunConfig {
  try {
    return overrideConfig(config, []).config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const own = error.problems.find(({ key }) => keys.includes(key));
    throw new UserError((own ?? error.problems[0]).message);
  }
}
