// Rules for an engine on a server (workbench.engine: tinker). Settings that the Tinker protocol does not support are
// rejected before a run starts. Properties that differ between servers are measured when connecting (models/tinker).
import { adapterParts, expressibleTargets } from '../../models/tinker/adapter-parts';
import type { RunConfig } from './schema';
import type { BrokenRule } from './broken-rule';

const where = 'which workbench.engine=tinker does not support';

/** Returns the rules that a configuration for a Tinker server violates; none for the local engine. */
export function engineRules(config: RunConfig): BrokenRule[] {
  const { workbench, algorithm, trainer, actor_rollout_ref } = config;
  if (workbench.engine !== 'tinker') return stalenessRules(workbench);
  const { actor, model, rollout } = actor_rollout_ref;
  const broken: BrokenRule[] = [];
  const refuse = (key: string, value: unknown, remedy: string): void =>
    void broken.push({ key, sentence: `is ${String(value)}, ${where}: ${remedy}` });
  if (workbench.engine_url === null || !isServerUrl(workbench.engine_url))
    broken.push({
      key: 'workbench.engine_url',
      unshown: true,
      sentence:
        "is not the URL of a server, but workbench.engine is tinker: give the server's http or https URL without user, path or query",
    });
  if (model.lora_rank === 0) refuse('lora.rank', 0, 'set it above 0, because the server trains only adapters');
  else if (!adapterParts(model.target_modules))
    refuse('lora.target_modules', JSON.stringify(model.target_modules), `set it to ${expressibleTargets}`);
  if (model.lora_adapter_path !== null)
    refuse('actor_rollout_ref.model.lora_adapter_path', model.lora_adapter_path, 'set it to null');
  if (model.lora_dropout !== 0) refuse('actor_rollout_ref.model.lora_dropout', model.lora_dropout, 'set it to 0');
  if (algorithm.adv_estimator === 'gae' && config.critic.optim.moments !== 'float32')
    refuse('critic.optim.moments', config.critic.optim.moments, 'set it to float32');
  if (rollout.temperature !== 1 && !trainer.val_only)
    refuse(
      'actor_rollout_ref.rollout.temperature',
      rollout.temperature,
      'set it to 1, the temperature at which the server trains',
    );
  for (const [at, cuts] of [
    ['actor_rollout_ref.rollout', rollout],
    ['actor_rollout_ref.rollout.val_kwargs', rollout.val_kwargs],
  ] as const) {
    if (cuts.min_p !== 0) refuse(`${at}.min_p`, cuts.min_p, 'set it to 0');
    if (cuts.repetition_penalty !== 1) refuse(`${at}.repetition_penalty`, cuts.repetition_penalty, 'set it to 1');
  }
  if (rollout.rollout_filter_metric.startsWith('entropy'))
    refuse(
      'actor_rollout_ref.rollout.rollout_filter_metric',
      rollout.rollout_filter_metric,
      'choose reward_variance, since the server returns no entropies',
    );
  if (rollout.val_kwargs.logprobs !== 0 && trainer.val_only)
    refuse('actor_rollout_ref.rollout.val_kwargs.logprobs', rollout.val_kwargs.logprobs, 'set it to 0');
  if (trainer.gradient_analysis_mode) refuse('trainer.gradient_analysis_mode', true, 'set it to false');
  for (const key of ['rollout_quantization', 'base_quantization'] as const)
    if (workbench[key] !== 'none') refuse(`workbench.${key}`, workbench[key], 'set it to none');
  if (actor.optim.moments !== 'float32')
    refuse('actor_rollout_ref.actor.optim.moments', actor.optim.moments, 'set it to float32');
  return broken;
}

/** The engine on this machine has one copy of the weights, so it cannot sample while it trains. */
const stalenessRules = ({ engine, max_staleness }: RunConfig['workbench']): BrokenRule[] =>
  max_staleness === 0
    ? []
    : [
        {
          key: 'workbench.max_staleness',
          sentence: `is ${max_staleness}, but workbench.engine is ${engine}, which does not sample while it trains: set it to 0, or use a server (workbench.engine=tinker)`,
        },
      ];

/** Whether a text is an http(s) URL without user, path or query. */
function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/*$/.test(pathname) && username + password + search + hash === '';
}
