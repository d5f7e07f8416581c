// A new environment from the template of `media/templates/environment`: its code, the cases it must pass, a configuration that trains on
// it, and the editor's settings for its folder: what the editor's command and `ragen env new` write. What is there already is never
// overwritten.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from './user-error';

/** What is wrong with a name; undefined where nothing is. */
export function nameProblem(name: string, folder: string): string | undefined {
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(name))
    return 'Use small letters, digits and underscores, beginning with a letter.';
  const taken = filesOf(name).find(({ file, shared }) => !shared && existsSync(join(folder, file)));
  return taken && `${taken.file} is there already.`;
}

/** What is written, by the template's file. A shared file is left as it is where there is one. */
const filesOf = (name: string) => [
  { template: 'environment.ts', file: `envs/${name}/${name}.ts`, shared: false },
  { template: 'environment.cases.json', file: `envs/${name}/${name}.cases.json`, shared: false },
  { template: 'run.yaml', file: `config/${name}.yaml`, shared: false },
  { template: 'tsconfig.json', file: 'envs/tsconfig.json', shared: true },
];

/**
 * Writes the files of an environment into a workspace's folder and answers their paths, that of its code first.
 * @throws UserError where the name is none or a file is there
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
