// Extracts the settings of the collapse diagnostics and the rollout filter from a run's manifest. If a key is missing,
// as in a manifest of another version, the key's feature is treated as switched off. Pure functions.
import { z } from 'zod';
import type { CollapseSettings } from '../../protocol/collapse-page';

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
    watch: workbench.watch.enabled,
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
