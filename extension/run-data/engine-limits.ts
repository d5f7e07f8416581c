// Lists the limits of runs on a server of the Tinker API, and the settings that such a server ignores. The trainer
// refuses configurations that violate a limit, `ragen engine probe` prints the limits, and the New Run form disables
// values that a limit does not permit. Some limits depend on an ability that not every server has. Such a limit applies
// only if a measurement has shown that the server lacks the ability.
import { valueAt } from './changeable-settings';

type Value = string | number | boolean | null;

/** Abilities that not every server has. An ability is null if it has not been measured. */
export interface EngineAbilities {
  /** Whether the server can train a critic. */
  critic: boolean | null;
  /** Whether a published version of the weights stays unchanged while the next step is trained. */
  keepsVersions: boolean | null;
}

/** The abilities before a server is measured. */
export const unmeasured: EngineAbilities = { critic: null, keepsVersions: null };

/**
 * The supported values of a key. `only` is the single supported value. `not` lists texts with which a supported value
 * must not begin. `above` is a number that a supported value must exceed.
 */
export type Supported = { only: Value } | { not: readonly string[] } | { above: number };

export interface EngineLimit {
  key: string;
  /** Key that contains the value in a resolved configuration; absent if `key` contains the value. */
  valueKey?: string;
  supported: Supported;
  /** Reason why other values are not supported: a sentence without a full stop. */
  reason: string;
  /** Remedy that the error message for an unsupported value names. */
  remedy: string;
  /** Kind of run that the limit concerns. If absent, the limit concerns both kinds. */
  of?: 'training' | 'evaluation';
  /** If set, the limit applies only to servers that lack this ability. */
  lacks?: keyof EngineAbilities;
  /** If set, the limit applies only if the given other key has the given value. */
  with?: { key: string; value: Value };
}

const model = 'actor_rollout_ref.model';
const rollout = 'actor_rollout_ref.rollout';

const cuts = (at: string): EngineLimit[] => [
  {
    key: `${at}.min_p`,
    supported: { only: 0 },
    reason: 'The protocol has no min_p',
    remedy: 'set it to 0',
  },
  {
    key: `${at}.repetition_penalty`,
    supported: { only: 1 },
    reason: 'The protocol has no repetition penalty',
    remedy: 'set it to 1',
  },
];

/** All limits, in the order in which they are reported. */
export const engineLimits: readonly EngineLimit[] = [
  {
    key: 'lora.rank',
    valueKey: `${model}.lora_rank`,
    supported: { above: 0 },
    reason: 'The server trains only adapters',
    remedy: 'set it above 0, because the server trains only adapters',
  },
  {
    key: `${model}.lora_adapter_path`,
    supported: { only: null },
    reason: 'The server starts from a new adapter',
    remedy: 'set it to null',
  },
  {
    key: 'lora.exclude_modules',
    valueKey: `${model}.exclude_modules`,
    supported: { only: null },
    reason: 'The server selects whole parts of the model for adapters',
    remedy: 'set it to null',
  },
  {
    key: 'actor_rollout_ref.actor.freeze_vision_tower',
    supported: { only: true },
    reason: 'The server trains only the decoder',
    remedy: 'set it to true',
  },
  {
    key: `${model}.lora_dropout`,
    supported: { only: 0 },
    reason: 'The server’s adapters have no dropout',
    remedy: 'set it to 0',
  },
  {
    key: 'algorithm.adv_estimator',
    supported: { not: ['gae'] },
    reason: 'gae needs a critic, which the server does not offer',
    remedy: 'choose an estimator without a critic, such as grpo',
    lacks: 'critic',
  },
  {
    key: 'algorithm.adv_estimator',
    supported: { not: ['tir_optimal_token_baseline'] },
    reason: 'tir_optimal_token_baseline needs complete distributions, which the server does not return',
    remedy: 'choose another estimator, such as opo',
  },
  {
    key: 'workbench.max_staleness',
    supported: { only: 0 },
    reason: 'The server samples each published version with the newest weights',
    remedy: 'set it to 0, or use a server that keeps published versions',
    of: 'training',
    lacks: 'keepsVersions',
  },
  {
    key: 'critic.optim.moments',
    supported: { only: 'float32' },
    reason: 'The server determines the precision of its optimizer',
    remedy: 'set it to float32',
    with: { key: 'algorithm.adv_estimator', value: 'gae' },
  },
  {
    key: `${rollout}.temperature`,
    supported: { only: 1 },
    reason: 'The server trains at temperature 1',
    remedy: 'set it to 1, the temperature at which the server trains',
    of: 'training',
  },
  ...cuts(rollout),
  ...cuts(`${rollout}.val_kwargs`),
  {
    key: `${rollout}.rollout_filter_metric`,
    supported: { not: ['entropy'] },
    reason: 'Scores by entropy need entropies, which the server does not return',
    remedy: 'choose reward_variance, since the server returns no entropies',
  },
  {
    key: `${rollout}.val_kwargs.logprobs`,
    supported: { only: 0 },
    reason: 'The server returns log-probs of sampled tokens only',
    remedy: 'set it to 0',
    of: 'evaluation',
  },
  {
    key: 'trainer.gradient_analysis_mode',
    supported: { only: false },
    reason: 'The server returns no gradients',
    remedy: 'set it to false',
  },
  ...['rollout_quantization', 'base_quantization'].map((name): EngineLimit => ({
    key: `workbench.${name}`,
    supported: { only: 'none' },
    reason: 'The server determines the precision of its weights',
    remedy: 'set it to none',
  })),
  {
    key: 'actor_rollout_ref.actor.optim.moments',
    supported: { only: 'float32' },
    reason: 'The server determines the precision of its optimizer',
    remedy: 'set it to float32',
  },
];

/** Settings that have no effect on a server, each with the reason. */
export const ignoredByEngine: readonly { key: string; reason: string }[] = [
  { key: 'workbench.device', reason: 'The server has its own devices' },
  { key: 'workbench.precision', reason: 'The server determines its precision' },
  { key: 'workbench.threads', reason: 'The server has its own processors' },
  { key: 'workbench.try_longest_batch', reason: 'The server plans its own memory' },
  { key: 'micro_batch_size_per_gpu', reason: 'The server splits batches itself' },
  { key: 'log_prob_micro_batch_size_per_gpu', reason: 'The server splits batches itself' },
];

/** Returns whether a limit permits a value. */
export function permits({ supported }: Pick<EngineLimit, 'supported'>, value: unknown): boolean {
  if ('only' in supported) return value === supported.only;
  if ('above' in supported) return typeof value === 'number' && value > supported.above;
  return !supported.not.some(beginning => String(value).startsWith(beginning));
}

/** Returns the limits that apply to a server with these abilities. */
export const limitsOf = (abilities: EngineAbilities): EngineLimit[] =>
  engineLimits.filter(({ lacks }) => lacks === undefined || abilities[lacks] === false);

/** Returns the limits that a configuration violates, each with the configured value. */
export function brokenLimits(
  config: Readonly<Record<string, unknown>>,
  abilities: EngineAbilities,
): { limit: EngineLimit; value: unknown }[] {
  const isEvaluation = valueAt(config, 'trainer.val_only') === true;
  return limitsOf(abilities)
    .filter(({ of }) => of === undefined || (of === 'evaluation') === isEvaluation)
    .filter(limit => !limit.with || valueAt(config, limit.with.key) === limit.with.value)
    .map(limit => ({ limit, value: valueAt(config, limit.valueKey ?? limit.key) }))
    .filter(({ limit, value }) => !permits(limit, value));
}

/** Returns a reason with a lower-case first letter, for use within a sentence. */
export const reasonClause = (reason: string): string => reason.charAt(0).toLowerCase() + reason.slice(1);

/** Returns a text that describes the supported values, such as `only 1` or `not gae`. */
export function supportedText(supported: Supported): string {
  if ('only' in supported) return `only ${String(supported.only)}`;
  if ('above' in supported) return `above ${supported.above}`;
  return `not ${supported.not.join(', ')}`;
}
