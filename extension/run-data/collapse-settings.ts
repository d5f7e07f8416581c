// Extracts the settings of the collapse diagnostics and the rollout filter from a run's manifest. If a key is missing,
// as in a manifest of another version, the key's feature is treated as switched off. Pure functions.
import { z } from 'zod';
import type { RunEvent } from './run-events';

/**
 * Settings of the rollout filter at the start of the run (`actor_rollout_ref.rollout.rollout_filter_*`). If `value`
 * changes during the run, a `setting` event records the new value.
 */
export interface FilterSettings {
  strategy: string;
  value: number;
  type: string;
  metric: string;
  include_zero: boolean;
  top_p_prob_mode: string;
  /**
   * Whether dynamic sampling (`algorithm.filter_groups`) is on. After the rollout filter, dynamic sampling drops each
   * group whose episodes have equal values of `filter_groups.metric`, and samples further batches.
   */
  dynamic_sampling: boolean;
  /** Whether the rollout filter uses normalised scores, as it does with `workbench.compat: ragen`. */
  normalised: boolean;
}

/**
 * Policy settings at the start of the run. If a coefficient changes during the run, a `setting` event records the new
 * value.
 */
export interface PolicySettings {
  /** Coefficients of the KL loss, of the KL penalty in the reward, and of the entropy term; 0 if the term is off. */
  kl_loss_coef: number;
  kl_coef: number;
  entropy_coeff: number;
  adv_estimator: string;
  clip_ratio_high: number;
}

/** The run's settings for the collapse diagnostics. */
export interface CollapseSettings {
  first_turn: boolean;
  multi_turn: boolean;
  turn_uniform: boolean;
  compute_freq: number;
  /** `agent_proxy.context_window_mode`. The diagnostics require `full`. */
  context_window_mode: string;
  gradients: boolean;
  gradients_every: number;
  watch: boolean;
  /** Name of the other trainer of an attached run; null for own runs. */
  trainer: string | null;
  /** Null if the manifest was written by an incompatible version. */
  filter: FilterSettings | null;
  policy: PolicySettings | null;
}

const flag = z.boolean().catch(false);
const section = <Shape extends z.ZodRawShape>(shape: Shape) => z.object(shape).catch(z.object(shape).parse({}));

/** The keys that are read from the resolved configuration. */
const configSchema = z.object({
  config: section({
    collapse_detection: section({
      first_turn_enabled: flag,
      multi_turn_enabled: flag,
      compute_freq: z.number().catch(0),
    }),
    workbench: section({
      collapse_turn_uniform: flag,
      compat: z.string().catch('corrected'),
      watch: section({ enabled: flag }),
    }),
    trainer: section({ gradient_analysis_mode: flag, gradient_analysis_every: z.number().catch(0) }),
    agent_proxy: section({ context_window_mode: z.string().catch('full') }),
    algorithm: section({
      filter_groups: section({ enable: flag }),
      adv_estimator: z.string().catch(''),
      use_kl_in_reward: flag,
      kl_ctrl: section({ kl_coef: z.number().catch(0) }),
    }),
    actor_rollout_ref: section({ rollout: z.unknown().optional(), actor: z.unknown().optional() }),
  }),
});

const trainerSchema = z.object({ trainer: z.object({ name: z.string() }) });

const filterSchema = z.object({
  rollout_filter_strategy: z.string(),
  rollout_filter_value: z.number(),
  rollout_filter_type: z.string(),
  rollout_filter_metric: z.string(),
  rollout_filter_include_zero: z.boolean(),
  rollout_filter_top_p_prob_mode: z.string(),
});

const actorSchema = z.object({
  use_kl_loss: z.boolean(),
  kl_loss_coef: z.number(),
  entropy_coeff: z.number(),
  clip_ratio_high: z.number(),
});

/** Returns the settings from a parsed manifest of any version. */
export function collapseSettings(manifest: unknown): CollapseSettings {
  const { config } = configSchema.parse(manifest ?? {});
  const trained = trainerSchema.safeParse(manifest);
  const { collapse_detection: detection, workbench, trainer, actor_rollout_ref: actor, algorithm } = config;
  const filter = filterSchema.safeParse(actor.rollout).data;
  const policy = actorSchema.safeParse(actor.actor).data;
  return {
    first_turn: detection.first_turn_enabled,
    multi_turn: detection.multi_turn_enabled,
    turn_uniform: workbench.collapse_turn_uniform,
    compute_freq: detection.compute_freq,
    context_window_mode: config.agent_proxy.context_window_mode,
    gradients: trainer.gradient_analysis_mode,
    gradients_every: trainer.gradient_analysis_every,
    watch: trained.success || workbench.watch.enabled, // the process that follows an attached run raises its alarms
    trainer: trained.data?.trainer.name ?? null,
    filter: filter
      ? {
          strategy: filter.rollout_filter_strategy,
          value: filter.rollout_filter_value,
          type: filter.rollout_filter_type,
          metric: filter.rollout_filter_metric,
          include_zero: filter.rollout_filter_include_zero,
          top_p_prob_mode: filter.rollout_filter_top_p_prob_mode,
          dynamic_sampling: algorithm.filter_groups.enable,
          normalised: workbench.compat === 'ragen',
        }
      : null,
    policy: policy
      ? {
          kl_loss_coef: policy.use_kl_loss ? policy.kl_loss_coef : 0,
          kl_coef: algorithm.use_kl_in_reward ? algorithm.kl_ctrl.kl_coef : 0,
          entropy_coeff: policy.entropy_coeff,
          adv_estimator: algorithm.adv_estimator,
          clip_ratio_high: policy.clip_ratio_high,
        }
      : null,
  };
}

/**
 * Returns the filter settings of a step's rollout: the initial settings, but with the value that `rollout_filter_value`
 * had at this step.
 */
export function filterAt(
  filter: FilterSettings | null,
  events: readonly RunEvent[],
  step: number,
): FilterSettings | null {
  const changes = events.flatMap(({ kind, step: after, data }) => {
    const isIt = kind === 'setting' && after < step && data?.key === 'actor_rollout_ref.rollout.rollout_filter_value';
    return isIt && typeof data.to === 'number' ? [data.to] : [];
  });
  return filter && changes.length > 0 ? { ...filter, value: changes[changes.length - 1] } : filter;
}
