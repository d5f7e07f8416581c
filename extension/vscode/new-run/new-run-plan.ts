// Evaluates the choices on the New Run page with the CLI. If the configuration is invalid, the result contains the
// values of the unchanged preset, so that the form can show them. Must not import `vscode`.
import type { FormProblem, NewRunChoice, PlannedRun, RunEstimate } from '../../protocol/new-run-page';
import { valueAt } from '../../run-data/changeable-settings';
import { brokenLimits, type EngineAbilities } from '../../run-data/engine-limits';
import { engineKeys, rateArguments, type KeptEngine } from '../engines/kept-engines';
import { ConfigError } from '../processes/cli-command';
import { groupsIn, overridesOf, yamlOfChoice } from './new-run-choice';

/** A preset: the CLI arguments that select it, and its name in a `defaults` list. */
export interface PresetSource {
  name: string;
  args: string[];
}

/** Runs the CLI with these arguments. Throws ConfigError or UserError. */
export type AskCli = (args: string[]) => Promise<Record<string, unknown>>;

/** Returns which abilities the newest test of a saved engine found. */
export const abilitiesOf = ({ facts }: KeptEngine): EngineAbilities => ({
  critic: facts?.critic ?? null,
  keepsVersions: facts?.keepsVersions ?? null,
});

/**
 * Plans the run that the user configured on the page. `keys` are the configuration keys whose values are returned;
 * `engine` is the saved engine on which the run would train.
 */
export async function planChoice(
  choice: NewRunChoice,
  { name, args }: PresetSource,
  keys: readonly string[],
  ask: AskCli,
  engine?: KeptEngine,
): Promise<PlannedRun> {
  const own = engine && engineKeys(engine);
  const overrides = overridesOf(choice, own);
  const title = choice.values['trainer.experiment_name'] ?? name;
  const yaml = yamlOfChoice(choice, name, `${title}: extends ${name}`, own);
  const described = (config: Record<string, unknown>) => ({
    values: Object.fromEntries(keys.map(key => [key, textOf(valueAt(config, key))])),
    tags: tagsIn(config),
    groups: { train: groupsIn(config, 'train'), val: groupsIn(config, 'val') },
    engine: engine ? { url: engine.url, model: engine.model } : engineIn(config),
  });
  try {
    const answer = await ask(['plan', ...args, ...(engine ? rateArguments(engine) : []), ...overrides]);
    const config = answer.config as Record<string, unknown>;
    const problems = engine ? engineProblems(config, engine) : [];
    const estimate = problems.length > 0 ? null : (answer.run as RunEstimate);
    return { ...described(config), estimate, problems, yaml };
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

/**
 * Returns the settings that the engine does not support according to its newest test. The trainer would also reject
 * these settings when it connects to the engine.
 */
const engineProblems = (config: Readonly<Record<string, unknown>>, engine: KeptEngine): FormProblem[] =>
  brokenLimits(config, abilitiesOf(engine)).map(({ limit: { key, remedy }, value }) => ({
    key,
    message: `config: ${key} is ${String(value)}, which the engine ${engine.name} does not support: ${remedy}`,
  }));

/** Returns the engine server that a configuration names; null if the run trains on this machine. */
function engineIn(config: Readonly<Record<string, unknown>>): PlannedRun['engine'] {
  if (valueAt(config, 'workbench.engine') !== 'tinker') return null;
  const model = valueAt(config, 'workbench.engine_model');
  return { url: textOf(valueAt(config, 'workbench.engine_url')), model: typeof model === 'string' ? model : null };
}

/** Returns the environments of `custom_envs`, in order. */
function tagsIn(config: Readonly<Record<string, unknown>>): PlannedRun['tags'] {
  const known = config['custom_envs'];
  if (typeof known !== 'object' || known === null) return [];
  return Object.keys(known).map(tag => ({ tag, environment: textOf(valueAt(known, `${tag}.env_type`)) }));
}

const textOf = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
