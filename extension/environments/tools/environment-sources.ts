// Finds environments and their names: the built-in ones by RAGEN's env_type, and the workspace's own by file. The
// latter are `envs/<name>/<name>.ts`, `envs/<name>/index.ts` or `envs/<name>.ts`; any other file is named by its path.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readBoundedSync } from '../../node/bounded-file';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { withDataSets } from '../../hub/data-sets';
import { installation } from '../../node/installation';
import { builtInFiles, environmentSpecs } from '../client/environment-specs';

/** A workspace file counts as an environment if it matches this. */
const definition = /export\s+default\b[\s\S]*\bdefineEnvironment\b|\bdefineEnvironment\b[\s\S]*export\s+default\b/;

/** RAGEN's names of the built-in environments. */
export const builtInTypes = (): string[] => Object.keys(builtInFiles(installation.environments));

/** The workspace's own environments as `env_type`s: paths relative to the workspace, sorted. */
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

/** Maximum bytes of a file that is examined. */
const mostBytes = 2 ** 24;

/** The text of a file; empty if it cannot be read, or is too large for an environment. */
function textOf(file: string): string {
  try {
    return readBoundedSync(file, { most: mostBytes, within: null }).toString('utf8');
  } catch {
    return '';
  }
}

/** The existing files that a name can refer to in a workspace. */
function candidates(workspace: string, name: string): string[] {
  const folder = join(workspace, 'envs');
  const files = [join(folder, name, `${name}.ts`), join(folder, name, 'index.ts'), join(folder, `${name}.ts`)];
  return files.filter(file => existsSync(file) && statSync(file).isFile());
}

/**
 * Returns the specification for `name`: a built-in environment, a folder or file in the workspace's `envs/`, or a path.
 * Fetches hub data sets that its configuration names.
 * @throws UserError if it is none of these, or a data set cannot be fetched
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
