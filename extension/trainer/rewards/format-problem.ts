// Whether an environment can be played with the configured prompt format. Pure.
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { PromptFormat } from '../rollout/prompt-format';

/**
 * Returns why an environment cannot be played with a prompt format, as one sentence; undefined if it can, or if no
 * format is configured.
 */
export function formatProblem(
  { tag, name, tools, model_calls }: Pick<LoadedEnvironment, 'tag' | 'name' | 'tools' | 'model_calls'>,
  format: PromptFormat | null | undefined,
): string | undefined {
  if (!format || (!tools && !model_calls)) return undefined;
  const why = tools ? 'has tools, whose calls have their own form' : 'runs a program that writes the prompts';
  return `config: custom_envs.${tag}.prompt_format is ${format}, but environment ${name} ${why}: set it to null`;
}
