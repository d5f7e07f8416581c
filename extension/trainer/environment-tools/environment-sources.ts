// Which environments there are and how they are named: the built-in ones by RAGEN's env_type, and the workspace's own by their file.
// A workspace's own lie in `envs/<name>/<name>.ts`, `envs/<name>/index.ts` or `envs/<name>.ts`; any other file is named by its path.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { readBoundedSync } from '../../protocol/bounded-file';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { withDataSets } from '../data-sets';
import { installation } from '../installation';
import { builtInFiles, environmentSpecs } from '../rollout/environment-specs';

/** What a workspace's own file must hold to be taken for an environment. */
const definition = /export\s+default\b[\s\S]*\bdefineEnvironment\b|\bdefineEnvironment\b[\s\S]*export\s+default\b/;

/** RAGEN's names of the built-in environments. */
export const builtInTypes = (): string[] => Object.keys(builtInFiles(installation.environments));

/** The workspace's own environments as `env_type`s: paths relative to the workspace, in order. */
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

/** Bytes of the largest file that is looked at. */
const mostBytes = 2 ** 24;

/** Empty where the file cannot be read, or is too large for an environment. */
function textOf(file: string): string {
  try {
    return readBoundedSync(file, { most: mostBytes, within: null }).toString('utf8');
  } catch {
    return '';
  }
}

/** The files that a name may stand for in a workspace, those that are there. */
function candidates(workspace: string, name: string): string[] {
  const folder = join(workspace, 'envs');
  const files = [join(folder, name, `${name}.ts`), join(folder, name, 'index.ts'), join(folder, `${name}.ts`)];
  return files.filter(file => existsSync(file) && statSync(file).isFile());
}

/**
 * What to load for a name: a built-in environment, one of the workspace's own by the name of its folder, or a file. Data sets of the hub
 * that its configuration names are fetched.
 * @throws UserError where it is none of these, or a data set cannot be had
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
