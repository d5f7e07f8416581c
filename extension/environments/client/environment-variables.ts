// The environment variables of an environment process. The product's own environments get only the variables they are
// known to read, and no other keys. A user's environment may read any variable, so a process with one gets all of them.
import { programEnvironment, variablesFor } from '../../../envs/api/program-environment';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { builtInFiles } from './environment-specs';

/** Variables that the product's own environments read directly, by env_type; others are named in an env_config. */
const readBy: Readonly<Record<string, (config: Readonly<Record<string, unknown>>) => readonly string[]>> = {
  search: () => ['RETRIEVAL_SERVER_URL'],
  // A local REPL executes code written by a model, so it must not see a server's key.
  lean: ({ repl_command }) =>
    repl_command ? ['ELAN_*', 'LEAN_PATH', 'LEAN_SYSROOT', 'LAKE_*'] : ['LEAN_SERVER_API_KEY'],
};

/**
 * Returns the variables of a process that runs these environments.
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

/** Variable names in an env_config: values of keys such as api_key_env, at any depth. */
function namedIn(value: unknown, key = ''): string[] {
  if (typeof value === 'string') return /(^|_)env$/.test(key) && /^[A-Z_][A-Z0-9_]*$/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => namedIn(inner, key));
}
