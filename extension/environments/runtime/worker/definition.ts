// Converts a bundle into an environment definition, inside the worker: evaluates the bundle, checks what it exports, and
// parses the environment's configuration. Each fault contains a remedy.
import type { z } from 'zod';
import type { Environment, EnvironmentDefinition, StateForms } from '../../../../envs/api/environment';
import type { RewardsDefinition } from '../../../../envs/api/rewards';
import { areNames, areStateForms, largest, longestText } from '../../../protocol/environment-message-bounds';
import { badValue, FaultError, faultOf } from '../threads/fault';
import { evaluateBundle } from './evaluate-bundle';
import { declaredTools } from '../tools/declared-tools';
import { defaultToolSettings } from '../tools/tool-environment';
import { longestTurnMs, type ToolDescription, type ToolSettings } from '../../../protocol/tool-link';
import { plainValue, shown } from './returned-values';
import { declaredRoles } from './declared-roles';
import { checkedRewards, declaredComponents, ScoreFunctions } from './score-functions';
import type { Description, WorkerSetup } from '../threads/worker-messages';

const badDefinition = (what: string, remedy: string) => new FaultError({ kind: 'build', what, remedy });

/** The checked exports of a bundle. */
export interface LoadedCode {
  definition: EnvironmentDefinition;
  /** Default export of the rewards file; undefined if the environment has no rewards file. */
  rewards?: RewardsDefinition;
}

/** Evaluates the bundle and returns its checked exports. */
export function loadDefinition(setup: WorkerSetup): LoadedCode {
  const exported = evaluateBundle(setup);
  const found = exported.default as Partial<EnvironmentDefinition> | undefined;
  const remedy = 'end the file with "export default defineEnvironment({ name, config, instruction, create })"';
  if (found === null || typeof found !== 'object') throw badDefinition('has no default export', remedy);
  if (typeof found.name !== 'string' || found.name === '')
    throw badDefinition('has a definition without a name', remedy);
  if (found.name.length > longestText)
    throw badDefinition(
      `has a name of ${found.name.length} characters`,
      `use a name of at most ${longestText} characters`,
    );
  if (typeof found.config?.safeParse !== 'function')
    throw badDefinition(
      `has a definition whose config is ${shown(found.config)}, which is not a zod schema`,
      'set it to z.object({ … }), or z.object({}) for no options',
    );
  if (typeof found.create !== 'function') throw badDefinition('has a definition without create(config)', remedy);
  if (typeof found.instruction !== 'string' && typeof found.instruction !== 'function')
    throw badDefinition(
      `has a definition whose instruction is ${shown(found.instruction)}`,
      'set it to a string ("" for none)',
    );
  const definition = found as EnvironmentDefinition;
  return 'rewards' in exported ? { definition, rewards: checkedRewards(exported.rewards) } : { definition };
}

/** Maximum time limit of a call that an environment may declare: one day, in milliseconds. */
const maxTimeoutMs = 86_400_000;

/**
 * Describes a definition under a parsed configuration. Creates an environment to find out whether it has a solver and
 * tools.
 * @param served returns the tools of servers, given the names of the environment's own tools
 */
export async function describe(
  { definition, rewards }: LoadedCode,
  config: Record<string, unknown>,
  settings: ToolSettings = defaultToolSettings,
  served: (own: readonly string[]) => Promise<ToolDescription[]> = () => Promise.resolve([]),
): Promise<Description> {
  const { name, instruction, legend, actions, wholeAnswer = false, dependencies, patience, create } = definition;
  const { modelCalls = false, atOnce } = definition;
  const components = declaredComponents(definition, rewards);
  await present(dependencies, config); // before the instruction, which may read the dependencies
  const text = typeof instruction === 'function' ? instruction(config) : instruction;
  if (typeof text !== 'string' || text.length > largest)
    throw badValue(`has the instruction ${shown(text)}`, `use a string of at most ${largest} characters`);
  const environment = checkedEnvironment(create(config));
  const has_solver = typeof environment.solve === 'function';
  const state_forms = declaredForms(definition, environment, config);
  const scores = new ScoreFunctions(components ?? {}, rewards).of(environment);
  const own = Array.from(declaredTools(environment.tools).values(), ({ description }) => description);
  await environment.close?.();
  const tools = [...own, ...(await served(own.map(tool => tool.name)))];
  const names = typeof actions === 'function' ? actions(config) : actions;
  const patience_ms: unknown = patience?.(config) ?? 0;
  if (typeof patience_ms !== 'number' || !(patience_ms >= 0 && patience_ms <= maxTimeoutMs))
    throw badValue(
      `returned the patience ${shown(patience_ms)}`,
      `return a number of milliseconds from 0 to ${maxTimeoutMs}`,
    );
  const at_once: unknown = atOnce?.(config);
  if (at_once !== undefined && !(Number.isSafeInteger(at_once) && Number(at_once) >= 1))
    throw badValue(`returned ${shown(at_once)} from atOnce(config)`, 'return a whole number of at least 1');
  const roles = declaredRoles(typeof definition.roles === 'function' ? definition.roles(config) : definition.roles);
  if (roles && (modelCalls || tools.length > 0))
    throw badValue(
      `declares roles and ${modelCalls ? 'modelCalls' : 'tools'}`,
      `remove one of them, because ${modelCalls ? 'a program that calls the model keeps conversations of its own' : 'the calls of a turn belong to no role'}`,
    );
  return {
    name,
    config: plainValue(config) as Record<string, unknown>,
    instruction: text,
    legend: checkedLegend(legend?.(config) ?? {}),
    ...(!isEmpty(names) && { actions: checkedActions(names) }),
    has_solver,
    whole_answer: wholeAnswer,
    ...(modelCalls && { model_calls: true }),
    ...(at_once !== undefined && { at_once: Number(at_once) }),
    ...(tools.length > 0 && { tools }),
    ...(roles && { roles }),
    patience_ms: Math.max(patience_ms, tools.length > 0 ? longestTurnMs(settings) : 0),
    ...(components && { components }),
    ...(scores && { scores }),
    ...(state_forms && { state_forms }),
  };
}

/**
 * Returns the forms in which an environment gives its true state; undefined if it declares none. A method `state`
 * without declared forms is the environment's own and is never called.
 * @throws FaultError if the forms do not fit the environment, or have another type
 */
export function declaredForms(
  { stateForms: declared }: Pick<EnvironmentDefinition, 'stateForms'>,
  environment: Environment,
  config: Record<string, unknown>,
): StateForms | undefined {
  const forms: unknown = typeof declared === 'function' ? declared(config) : declared;
  if (forms === undefined) return undefined;
  const copy: unknown = plainValue(forms);
  if (!areStateForms(copy))
    throw badValue(
      `has the stateForms ${shown(forms)}`,
      'map the forms that state(form) gives (natural_language, structured, symbolic) to descriptions',
    );
  if (typeof environment.state !== 'function' && Object.keys(copy).length > 0)
    throw badValue('declares stateForms, but has no method state(form)', 'add it, or remove stateForms');
  return copy;
}

/**
 * Calls the environment's function `dependencies`, which throws if a dependency is missing. If a dependency is missing,
 * the fault contains the parsed configuration, because the configuration itself is valid.
 */
async function present(
  dependencies: EnvironmentDefinition['dependencies'],
  config: Record<string, unknown>,
): Promise<void> {
  try {
    await dependencies?.(config);
  } catch (error) {
    throw new FaultError({ ...faultOf(error), config: plainValue(config) as Record<string, unknown> });
  }
}

/**
 * Checks the return value of `create`.
 * @throws FaultError if the value is not an environment
 */
export function checkedEnvironment(environment: Environment): Environment {
  if (typeof environment?.reset !== 'function' || typeof environment.step !== 'function')
    throw badValue(`returned ${shown(environment)} from create(config)`, 'return an object with reset and step');
  return environment;
}

const isEmpty = (names: unknown): boolean =>
  names === undefined || (typeof names === 'object' && names !== null && Object.keys(names).length === 0);

/**
 * Checks action names by id and returns a copy.
 * @throws FaultError if `actions` has another format
 */
export function checkedActions(actions: unknown): Record<number, string> {
  const entries = actions === null || typeof actions !== 'object' ? [] : Object.entries(actions);
  if (entries.length === 0 || !entries.every(([id, name]) => Number.isInteger(Number(id)) && typeof name === 'string'))
    throw badValue(
      `returned ${shown(actions)} as actions`,
      'return names by integer ids, such as { 1: "Left" }, or undefined',
    );
  const names = Object.fromEntries(entries) as Record<number, string>;
  if (!areNames(names))
    throw badValue('returned action names that are too long', `return names of at most ${largest} characters in total`);
  return names;
}

function checkedLegend(legend: unknown): Record<string, string> {
  const entries = legend === null || typeof legend !== 'object' ? [] : Object.entries(legend);
  if (typeof legend !== 'object' || !entries.every(([, meaning]) => typeof meaning === 'string'))
    throw badValue(`returned the legend ${shown(legend)}`, 'return meanings by symbol, such as { "#": "wall" }');
  return plainValue(Object.fromEntries(entries)) as Record<string, string>;
}

/**
 * Parses a configuration and fills in defaults.
 * @throws FaultError that names the invalid key by its path in the configuration file
 */
export function parseConfig(schema: z.ZodType, given: Record<string, unknown>, tag: string): Record<string, unknown> {
  const keyPath = (path: readonly PropertyKey[]) => ['custom_envs', tag, 'env_config', ...path.map(String)].join('.');
  const known = knownKeys(schema);
  const unknown = known && Object.keys(given).find(key => !known.includes(key));
  if (known && unknown !== undefined)
    throw badValue(`does not know ${keyPath([unknown])} (${shown(given[unknown])})`, `use one of ${known.join(', ')}`);
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data as Record<string, unknown>;
  const [issue] = parsed.error.issues;
  const value = issue.path.reduce<unknown>(
    (held, key) => (held as Record<PropertyKey, unknown> | undefined)?.[key],
    given,
  );
  const [head, ...tail] = issue.message.split(': ');
  const allowed = tail.length > 0 ? tail.join(': ') : head;
  throw badValue(
    `does not accept ${keyPath(issue.path)}, which is ${shown(value)} (${allowed})`,
    'give it an allowed value',
  );
}

/**
 * Returns the keys of an object schema; a transform may follow the schema. Returns undefined for other types of
 * schemas, and for objects that accept unknown keys.
 */
function knownKeys(schema: z.ZodType): string[] | undefined {
  const def = schema.def as { type: string; in?: z.ZodType; shape?: object; catchall?: z.ZodType };
  if (def.type === 'pipe' && def.in) return knownKeys(def.in);
  if (def.type !== 'object' || !def.shape) return undefined;
  return !def.catchall || def.catchall.def.type === 'never' ? Object.keys(def.shape) : undefined;
}
