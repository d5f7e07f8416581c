// Evaluates the choices on the New Run page with the CLI. If the configuration is invalid, the result contains the
// values of the unchanged preset, so that the form can show them. Must not import `vscode`.
import type { FormProblem, NewRunChoice, PlannedRun, RunEstimate } from '../../protocol/new-run-page';
import { valueAt } from '../../run-data/changeable-settings';
import { ConfigError } from '../processes/cli-command';
import { groupsIn, overridesOf, yamlOfChoice } from './new-run-choice';

/** A preset: the CLI arguments that select it, and its name in a `defaults` list. */
export interface PresetSource {
  name: string;
  args: string[];
}

/** Runs the CLI with these arguments. Throws ConfigError or UserError. */
export type AskCli = (args: string[]) => Promise<Record<string, unknown>>;

/** Plans a choice. `keys` are the configuration keys whose values are returned. */
export async function planChoice(
  choice: NewRunChoice,
  { name, args }: PresetSource,
  keys: readonly string[],
  ask: AskCli,
): Promise<PlannedRun> {
  const overrides = overridesOf(choice);
  const yaml = yamlOfChoice(choice, name, `${choice.values['trainer.experiment_name'] ?? name}: extends ${name}`);
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
    // `plan` fails if an override is invalid or the model is unavailable. In these cases, `config` without overrides
    // returns the preset's values.
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

/** Returns the environments of `custom_envs`, in order. */
function tagsIn(config: Readonly<Record<string, unknown>>): PlannedRun['tags'] {
  const known = config['custom_envs'];
  if (typeof known !== 'object' || known === null) return [];
  return Object.keys(known).map(tag => ({ tag, environment: textOf(valueAt(known, `${tag}.env_type`)) }));
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
