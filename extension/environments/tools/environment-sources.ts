// Finds environments by name. A built-in environment is named by RAGEN's env_type. An environment of the workspace is
// `envs/<name>/<name>.ts`, `envs/<name>/index.ts` or `envs/<name>.ts`; any other file is named by its path.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readBoundedSync } from '../../node/bounded-file';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { withDataSets } from '../../hub/data-sets';
import { installation } from '../../node/installation';
import { builtInFiles, environmentSpecs } from '../client/environment-specs';

/** Matches the text of a file that defines an environment. */
const definition = /export\s+default\b[\s\S]*\bdefineEnvironment\b|\bdefineEnvironment\b[\s\S]*export\s+default\b/;

/** Returns RAGEN's `env_type` of each built-in environment. */
export const builtInTypes = (): string[] => Object.keys(builtInFiles(installation.environments));

/**
 * Returns the `env_type` of each environment of the workspace, sorted. The `env_type` is the path of the environment's
 * file relative to the workspace.
 */
export function workspaceTypes(workspace: string): string[] {
  const folder = join(workspace, 'envs');
  if (!existsSync(folder) || resolve(folder) === resolve(installation.environments)) return [];
  const own = readdirSync(folder)
    .sort()
    .flatMap(name => candidates(workspace, name.replace(/\.ts$/, '')));
  return [...new Set(own)]
    .filter(file => definition.test(textOf(file)))
    .map(file => relative(workspace, file).replaceAll('\\', '/'));
}

/** Maximum bytes of a file that is searched for a definition. */
const mostBytes = 2 ** 24;

/** Returns the text of a file; empty if the file cannot be read or has more than `mostBytes` bytes. */
function textOf(file: string): string {
  try {
    return readBoundedSync(file, { most: mostBytes, within: null }).toString('utf8');
  } catch {
    return '';
  }
}

/** Returns the existing files in the workspace to which a name can refer, in order of precedence. */
function candidates(workspace: string, name: string): string[] {
  const folder = join(workspace, 'envs');
  const files = [join(folder, name, `${name}.ts`), join(folder, name, 'index.ts'), join(folder, `${name}.ts`)];
  return files.filter(file => existsSync(file) && statSync(file).isFile());
}

/**
 * Returns the specification of an environment. Downloads the Hugging Face data sets that the environment's
 * configuration names.
 * @param name a built-in environment, a folder or file in the workspace's `envs/`, or a path
 * @throws UserError if no such environment exists, or if a download fails
 */
export async function environmentSpec(
  name: string,
  config: Record<string, unknown>,
  workspace: string,
): Promise<EnvironmentSpec> {
  const builtIn = builtInTypes().includes(name);
  const own = builtIn || existsSync(resolve(workspace, name)) ? undefined : candidates(workspace, name).at(0);
  const custom_envs = { [name]: { env_type: own ?? name, env_config: config } };
  const specs = environmentSpecs([name], custom_envs, installation.environments, workspace);
  const [spec] = await withDataSets(specs, workspace, line => process.stderr.write(`${line}\n`));
  return spec;
}
