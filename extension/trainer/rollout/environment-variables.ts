// The variables of an environment process. The product's own environments get those that they are known to read and no key beside them. A
// user's environment is a program of the user's, which may read any variable: where there is one, its process gets all of them.
import { programEnvironment, variablesFor } from '../../../envs/api/program-environment';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { builtInFiles } from './environment-specs';

/** Variables that the product's own environments read by themselves, by env_type; others are named in an env_config. */
const readBy: Readonly<Record<string, (config: Readonly<Record<string, unknown>>) => readonly string[]>> = {
  search: () => ['RETRIEVAL_SERVER_URL'],
  // A local REPL runs what a model wrote: a server's key must not be near it.
  lean: ({ repl_command }) =>
    repl_command ? ['ELAN_*', 'LEAN_PATH', 'LEAN_SYSROOT', 'LAKE_*'] : ['LEAN_SERVER_API_KEY'],
};

/**
 * What a process that runs these environments finds among its variables.
 * @param builtIn folder of the product's own environments
 */
export function environmentVariables(
  specs: readonly Pick<EnvironmentSpec, 'env_type' | 'config'>[],
  builtIn: string,
  env: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const own = builtInFiles(builtIn);
  if (!specs.every(({ env_type }) => Object.hasOwn(own, env_type))) return { ...env };
  const named = specs.flatMap(({ env_type, config }) => [...(readBy[env_type]?.(config) ?? []), ...namedIn(config)]);
  const { node, network, folders, devices } = variablesFor;
  return programEnvironment([...node, ...network, ...folders, ...devices, ...named], env);
}

/** Names of variables in an env_config: the values of keys such as api_key_env, at any depth. */
function namedIn(value: unknown, key = ''): string[] {
  if (typeof value === 'string') return /(^|_)env$/.test(key) && /^[A-Z_][A-Z0-9_]*$/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => namedIn(inner, key));
}
