// Evaluates the choices on the New Run page in the planning process. If the configuration is invalid, the result contains the
// values of the unchanged preset, so that the form can show them. Must not import `vscode`.
import { appendAll } from '../../common/lists';
import type { FormProblem, NewRunChoice, PlannedRun, RunEstimate } from '../../protocol/new-run-page';
import type { ConfigQuestion, PlanQuestion } from '../../protocol/planning';
import { valueAt } from '../../run-data/changeable-settings';
import { brokenLimits, type EngineAbilities } from '../../run-data/engine-limits';
import { engineKeys, planRates, type KeptEngine } from '../engines/kept-engines';
import { ConfigError } from '../processes/cli-command';
import { sweepFile, sweepKey, sweepOf, sweepProblems, type SweepSource } from './new-run-sweep';
import { groupsIn, overridesOf, yamlOfChoice, yamlOfConfig } from './new-run-choice';

/** What a run starts from. */
export interface PresetSource {
  /** Name in a `defaults` list. */
  name: string;
  /** CLI arguments that select it. */
  args: string[];
  /** The part of a question to the planner that selects it. */
  asked: Pick<ConfigQuestion, 'configName' | 'configFile' | 'run' | 'checkpoint'>;
  /** The configuration of a sweep that starts from it; null if no sweep can. */
  sweep: SweepSource | null;
}

/** The requests to the planning process. They throw a ConfigError or a UserError. */
export interface ConfigPlanner {
  check(question: ConfigQuestion): Promise<{ config: Record<string, unknown> }>;
  plan(question: PlanQuestion): Promise<{ config: Record<string, unknown>; run: RunEstimate }>;
}

/** Returns which abilities the newest test of a saved engine found. */
export const abilitiesOf = ({ facts }: KeptEngine): EngineAbilities => ({
  critic: facts?.critic ?? null,
  keepsVersions: facts?.keepsVersions ?? null,
});

/**
 * Checks the run that the user configured on the page, and plans it if `estimated` is true. `keys` are the
 * configuration keys whose values are returned; `engine` is the saved engine on which the run would train.
 */
export async function planChoice(
  choice: NewRunChoice,
  { name, asked, sweep: sweepSource }: PresetSource,
  keys: readonly string[],
  planner: ConfigPlanner,
  { engine, estimated = true }: { engine?: KeptEngine; estimated?: boolean } = {},
): Promise<PlannedRun> {
  const own = engine && engineKeys(engine);
  const title = choice.values['trainer.experiment_name'] ?? name;
  const sweep = choice.sweep && sweepOf(choice.sweep);
  const runs = sweep && 'runs' in sweep ? sweep : null;
  const yaml =
    runs && sweepSource
      ? sweepFile(choice, runs, sweepSource, fileName(title), own)
      : yamlOfChoice(choice, name, `${title}: extends ${name}`, own);
  const described = (config: Record<string, unknown>) => ({
    // No configuration has the settings of a fork, so its file contains all keys.
    sweepRuns: runs && sweepSource && runs.runs,
    yaml: asked.checkpoint === undefined ? yaml : yamlOfConfig(config, `${title}: from ${name}`),
    values: Object.fromEntries(keys.map(key => [key, textOf(valueAt(config, key))])),
    tags: tagsIn(config),
    groups: { train: groupsIn(config, 'train'), val: groupsIn(config, 'val') },
    engine: engine ? { url: engine.url, model: engine.model } : engineIn(config),
  });
  const question = { ...asked, workspace: choice.folder, overrides: overridesOf(choice, own) };
  const evaluate = async (): Promise<{ config: Record<string, unknown>; run: RunEstimate | null }> => {
    if (!estimated) return { ...(await planner.check(question)), run: null };
    return planner.plan({ ...question, ...(engine && { rates: planRates(engine) }) });
  };
  try {
    const { config, run } = await evaluate();
    const problems = engine ? engineProblems(config, engine) : [];
    if (sweep && 'problems' in sweep) appendAll(problems, sweep.problems);
    if (sweep && !sweepSource) problems.push({ key: sweepKey, message: noSweepOfFork });
    const check = (overrides: string[]) =>
      planner.check({ ...question, overrides: [...question.overrides, ...overrides] });
    if (runs && problems.length === 0) appendAll(problems, await sweepProblems(runs, check));
    return { ...described(config), estimate: problems.length > 0 ? null : run, problems };
  } catch (error) {
    const problems = problemsOf(error);
    // A plan fails if an override is invalid or the model is unavailable. The form then shows the preset's values.
    const { config } = await planner.check({ ...question, overrides: [] }).catch(() => ({ config: {} }));
    return { ...described(config), estimate: null, problems };
  }
}

const noSweepOfFork =
  'Sweep: a sweep cannot start from a checkpoint: choose another starting point, or duplicate the run.';

/** Returns a text as the name of a file: lower-case letters, digits and hyphens. */
export const fileName = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '') || 'run';

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
