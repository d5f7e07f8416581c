// Checks the settings of on-policy distillation: one teacher, temperature 1, and no settings without effect.
import { isServerUrl } from '../../common/server-url';
import { didYouMean } from '../../common/suggest';
import type { BrokenRule } from './broken-rule';
import { shown } from './config-error';
import type { RunConfig } from './schema';

const at = 'workbench.distillation';

export function distillationRules({ workbench, model_info, actor_rollout_ref, algorithm }: RunConfig): BrokenRule[] {
  const { distillation } = workbench;
  if (distillation === null) return [];
  const { teacher, service, server, use_rewards } = distillation;
  const broken: BrokenRule[] = [];
  const add = (key: string, sentence: string): void => void broken.push({ key, sentence });
  const given = Object.entries({ teacher, service, server }).filter(([, value]) => value !== null);
  if (given.length === 0)
    add(
      `${at}.teacher`,
      'is null, and so are service and server: name the model, service or server that scores the tokens',
    );
  if (given.length > 1) {
    const [[first], [second, value]] = given;
    add(`${at}.${second}`, `is ${shown(value)}, but ${first} is set too: set one of the two to null`);
  }
  if (server !== null && !isServerUrl(server.url))
    broken.push({
      key: `${at}.server.url`,
      unshown: true,
      sentence: "is not the URL of a server: give the server's http or https URL without user, path or query",
    });
  const known = model_info ?? {};
  if (service !== null && !Object.hasOwn(known, service)) {
    const remedy = didYouMean(service, Object.keys(known), 'add it to model_info');
    add(`${at}.service`, `is ${shown(service)}, which is not a model of model_info: ${remedy}`);
  } else if (service !== null && known[service].provider_name === 'anthropic')
    add(
      `${at}.service`,
      `is ${shown(service)}, but Anthropic's API returns no log-probs: use an OpenAI-compatible service`,
    );
  const { temperature } = actor_rollout_ref.rollout;
  if (temperature !== 1)
    add(
      'actor_rollout_ref.rollout.temperature',
      `is ${temperature}, but a teacher's log-probs are those of temperature 1: set it to 1`,
    );
  if (!use_rewards && algorithm.adv_estimator === 'gae')
    add(`${at}.use_rewards`, "is false, so gae's critic would be trained in vain: choose another adv_estimator");
  return broken;
}
