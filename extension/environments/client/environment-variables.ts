// The environment variables of an environment process. A process that runs only built-in environments receives general
// variables (Node.js, network, folders, devices) and the variables that are listed in `readBy` or named in an
// env_config. Other variables are dropped, because they may contain keys. A process that runs an environment written by
// the user receives all variables, because the environment's code may read any of them. envs/api/program-environment.ts
// lists the general variables.
import { programEnvironment, variablesFor } from '../../../envs/api/program-environment';
import type { ToolServer } from '../../protocol/tool-link';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { builtInFiles } from './environment-specs';

/**
 * Names of the variables that a built-in environment reads directly, by env_type. An env_config may name further
 * variables.
 */
const readBy: Readonly<Record<string, (config: Readonly<Record<string, unknown>>) => readonly string[]>> = {
  program: ({ pass_env, container }) => [
    ...(Array.isArray(pass_env) ? pass_env.filter(name => typeof name === 'string') : []),
    ...(container ? variablesFor.containers : []),
  ],
  search: () => ['RETRIEVAL_SERVER_URL'],
  // If `repl_command` is set, a local REPL executes code that a model wrote. The REPL must not receive the API key of
  // the Lean server.
  lean: ({ repl_command }) =>
    repl_command ? ['ELAN_*', 'LEAN_PATH', 'LEAN_SYSROOT', 'LAKE_*'] : ['LEAN_SERVER_API_KEY'],
};

/**
 * Returns the variables for a process that runs these environments.
 * @param builtIn folder of the built-in environments
 */
export function environmentVariables(
  specs: readonly Pick<EnvironmentSpec, 'env_type' | 'config' | 'tools'>[],
  builtIn: string,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const own = builtInFiles(builtIn);
  if (!specs.every(({ env_type }) => Object.hasOwn(own, env_type))) return { ...env };
  const named = specs.flatMap(({ env_type, config, tools }) => [
    ...(readBy[env_type]?.(config) ?? []),
    ...namedIn(config),
    ...Object.values(tools?.servers ?? {}).flatMap(variablesOf),
  ]);
  const { node, network, folders, devices } = variablesFor;
  return programEnvironment([...node, ...network, ...folders, ...devices, ...named], env);
}

/** Returns the names of the variables that a tool server reads. */
export const variablesOf = (server: ToolServer): string[] =>
  server.command === undefined ? Object.values(server.headers_env) : server.pass_env;

/**
 * Returns the variable names in an env_config. These are the values of all keys, at any depth, that end in `env`, such
 * as api_key_env.
 */
function namedIn(value: unknown, key = ''): string[] {
  if (typeof value === 'string') return /(^|_)env$/.test(key) && /^[A-Z_][A-Z0-9_]*$/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => namedIn(inner, key));
}
