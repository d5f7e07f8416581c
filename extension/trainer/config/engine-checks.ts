// Rules for an engine on a server (workbench.engine: tinker). Settings that the Tinker protocol does not support are
// rejected before a run starts; run-data/engine-limits.ts lists these settings. Abilities that differ between servers,
// such as training a critic, are measured when the trainer connects (models/tinker).
import { isServerUrl } from '../../common/server-url';
import { adapterParts, expressibleTargets } from '../../models/tinker/adapter-parts';
import { brokenLimits, unmeasured } from '../../run-data/engine-limits';
import type { BrokenRule } from './broken-rule';
import type { RunConfig } from './schema';

/** Returns the rules that a configuration for a Tinker server violates; none for the local engine. */
export function engineRules(config: RunConfig): BrokenRule[] {
  const { workbench, actor_rollout_ref } = config;
  if (workbench.engine !== 'tinker') return stalenessRules(workbench);
  const { model } = actor_rollout_ref;
  const broken: BrokenRule[] = [];
  const refuse = (key: string, value: unknown, remedy: string): void =>
    void broken.push({
      key,
      sentence: `is ${String(value)}, which workbench.engine=tinker does not support: ${remedy}`,
    });
  if (workbench.engine_url === null || !isServerUrl(workbench.engine_url))
    broken.push({
      key: 'workbench.engine_url',
      unshown: true,
      sentence:
        "is not the URL of a server, but workbench.engine is tinker: give the server's http or https URL without user, path or query",
    });
  if (model.lora_rank > 0 && !adapterParts(model.target_modules))
    refuse('lora.target_modules', JSON.stringify(model.target_modules), `set it to ${expressibleTargets}`);
  for (const { limit, value } of brokenLimits(config, unmeasured)) refuse(limit.key, value, limit.remedy);
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
