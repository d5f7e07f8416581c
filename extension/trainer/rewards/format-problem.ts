// Whether an environment can be played with the configured prompt format. Pure.
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { TagConfig } from '../config/schema';
import { askedForm, stateForm } from '../rollout/prompt-format';

/**
 * Returns why an environment cannot be played with the prompt format of its tag, or why descriptions cannot be compared
 * with its true states, as one sentence; undefined if it can, or if no format is configured.
 */
export function formatProblem(
  environment: Pick<LoadedEnvironment, 'tag' | 'name' | 'tools' | 'model_calls' | 'state_forms'>,
  { prompt_format: format, rewards }: Pick<TagConfig, 'prompt_format' | 'rewards'>,
): string | undefined {
  const { tag, name, tools, model_calls } = environment;
  if (!format) return undefined;
  const compared = (['observation', 'prediction'] as const).find(part => rewards?.[part]);
  if (compared && !askedForm(environment, format))
    return `config: custom_envs.${tag}.rewards.${compared} compares descriptions with the true state, but environment ${name} does not give it in the form ${stateForm(format)}: add this form to its stateForms and state(form), choose another prompt_format, or set ${compared} to null`;
  if (!tools && !model_calls) return undefined;
  const why = tools ? 'has tools, whose calls have their own form' : 'runs a program that writes the prompts';
  return `config: custom_envs.${tag}.prompt_format is ${format}, but environment ${name} ${why}: set it to null`;
}
