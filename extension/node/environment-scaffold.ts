// Creates an environment from the template in `media/templates/environment`: code, test cases, a configuration that
// trains on it, and a tsconfig.json for the folder. Used by the editor command and by `ragen env new`. Existing files
// are never overwritten.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from '../common/user-error';

/** Returns a text that says why a name is invalid; undefined if the name is valid. */
export function nameProblem(name: string, folder: string): string | undefined {
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(name))
    return 'Use lowercase letters, digits and underscores, starting with a letter.';
  const taken = filesOf(name).find(({ file, shared }) => !shared && existsSync(join(folder, file)));
  return taken && `${taken.file} already exists.`;
}

/**
 * Files to write, with their templates. `shared` marks a file that all environments use; if such a file exists, it is
 * left unchanged.
 */
const filesOf = (name: string) => [
  { template: 'environment.ts', file: `envs/${name}/${name}.ts`, shared: false },
  { template: 'environment.cases.json', file: `envs/${name}/${name}.cases.json`, shared: false },
  { template: 'run.yaml', file: `config/${name}.yaml`, shared: false },
  { template: 'tsconfig.json', file: 'envs/tsconfig.json', shared: true },
];

/**
 * Writes the files of an environment into a workspace folder. Returns their paths; the code is first.
 * @throws UserError if the name is invalid or a file exists
 */
export async function scaffoldEnvironment(extensionPath: string, folder: string, name: string): Promise<string[]> {
  const problem = nameProblem(name, folder);
  if (problem !== undefined) throw new UserError(`${name} cannot be the name of a new environment: ${problem}`);
  const written: string[] = [];
  const tag = name.replace(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  for (const { template, file, shared } of filesOf(name)) {
    const path = join(folder, file);
    if (shared && existsSync(path)) continue;
    const text = await readFile(join(extensionPath, 'media', 'templates', 'environment', template), 'utf8');
    await mkdir(dirname(path), { recursive: true });
    const named = text.replaceAll('my_environment', name).replaceAll('MyEnvironment', tag);
    await writeFile(path, named, { flag: 'wx' });
    written.push(path);
  }
  return written;
}
