// Asks the trainer's terminal what a choice on the New Run page comes to. A configuration that is refused keeps the values that it was
// built on, so that the form stays full while a mistake is in it. No `vscode` here.
import type { FormProblem, NewRunChoice, PlannedRun, RunEstimate } from '../../protocol/new-run-page';
import { valueAt } from '../../protocol/settings';
import { ConfigError } from '../start-run';
import { groupsIn, overridesOf, yamlOfChoice } from './new-run-choice';

/** A preset as the terminal takes it, and as a file that builds on it names it. */
export interface PresetSource {
  name: string;
  args: string[];
}

/** Asks the terminal with these arguments. Throws ConfigError or UserError. */
export type AskTerminal = (args: string[]) => Promise<Record<string, unknown>>;

/** @param keys those whose values are wanted */
export async function planChoice(
  choice: NewRunChoice,
  { name, args }: PresetSource,
  keys: readonly string[],
  ask: AskTerminal,
): Promise<PlannedRun> {
  const overrides = overridesOf(choice);
  const yaml = yamlOfChoice(choice, name, `${choice.values['trainer.experiment_name'] ?? name}: built on ${name}`);
  const described = (config: Record<string, unknown>) => ({
    values: Object.fromEntries(keys.map(key => [key, textOf(valueAt(config, key))])),
    tags: tagsIn(config),
    groups: { train: groupsIn(config, 'train'), val: groupsIn(config, 'val') },
  });
  try {
    const { run, config } = await ask(['plan', ...args, ...overrides]);
    return { ...described(config as Record<string, unknown>), estimate: run as RunEstimate, problems: [], yaml };
  } catch (error) {
    const problems = problemsOf(error);
    // The preset alone may be sound, or its model out of reach: its values are known without the plan.
    const config = await ask(['config', ...args, '--resolved']).then(
      answer => answer.config as Record<string, unknown>,
      () => ({}),
    );
    return { ...described(config), estimate: null, problems, yaml };
  }
}

function problemsOf(error: unknown): FormProblem[] {
  if (error instanceof ConfigError) return error.problems.map(({ key = '', message }) => ({ key, message }));
  return [{ key: '', message: error instanceof Error ? error.message : String(error) }];
}

/** The environments of `custom_envs`, in its order. */
function tagsIn(config: Readonly<Record<string, unknown>>): PlannedRun['tags'] {
  const known = config['custom_envs'];
  if (typeof known !== 'object' || known === null) return [];
  return Object.keys(known).map(tag => ({ tag, environment: textOf(valueAt(known, `${tag}.env_type`)) }));
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
