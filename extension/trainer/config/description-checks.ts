// Rules for the rewards of answers that describe states: each needs a prompt format that asks for what it scores, and
// descriptions in sentences need a judge.
import { judgedParts } from '../rewards/state-judge';
import { describedParts, stateForm } from '../rollout/prompt-format';
import type { BrokenRule } from './broken-rule';
import type { RunConfig, TagConfig } from './schema';

/** Returns the violated rules of all tags. */
export const descriptionRules = ({ custom_envs }: Pick<RunConfig, 'custom_envs'>): BrokenRule[] =>
  Object.entries(custom_envs).flatMap(([tag, settings]) => tagRules(tag, settings));

function tagRules(tag: string, { prompt_format, rewards }: TagConfig): BrokenRule[] {
  if (!rewards) return [];
  const at = `custom_envs.${tag}.rewards`;
  const now = `custom_envs.${tag}.prompt_format is ${prompt_format ?? 'null'}`;
  const broken: BrokenRule[] = [];
  const add = (key: string, sentence: string): void => void broken.push({ key: `${at}.${key}`, sentence });
  if (rewards.format && !prompt_format) add('format', `is set, but ${now}: set it to a format, or this key to null`);
  for (const part of ['observation', 'prediction'] as const) {
    if (!rewards[part]) continue;
    const fitting = part === 'observation' ? 'grounding' : 'worldmodeling';
    if (!prompt_format || !describedParts(prompt_format).includes(part))
      add(
        part,
        `is set, but ${now}, which has no <${part}>: choose ${fitting} or grounding_worldmodeling, or set this key to null`,
      );
    else if (stateForm(prompt_format) === 'natural_language' && !rewards.state_judge)
      add(
        part,
        `is set, but only a judge can score descriptions in sentences: set rewards.state_judge, choose ${prompt_format}_structured or ${prompt_format}_symbolic, or set this key to null`,
      );
  }
  if (rewards.state_judge && judgedParts({ prompt_format, rewards }).length === 0)
    add(
      'state_judge',
      'is set, but it would score nothing: choose a prompt_format with descriptions in sentences (grounding, worldmodeling) and set rewards.observation or rewards.prediction, or set this key to null',
    );
  return broken;
}
