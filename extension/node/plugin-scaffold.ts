// Creates a plug-in from the template of its kind in `media/templates/plugin`, and a tsconfig.json for the folder
// `plugins`. Used by `ragen plugin new`. Existing files are never overwritten.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UserError } from '../common/user-error';
import type { PluginKind } from '../protocol/plugin-link';

/**
 * Writes `plugins/<name>.ts` into a workspace folder. Returns the paths of the written files; the code is first.
 * @throws UserError if the name is invalid or the file exists
 */
export async function scaffoldPlugin(
  extensionPath: string,
  folder: string,
  kind: PluginKind,
  name: string,
): Promise<string[]> {
  const refuse = (problem: string) => new UserError(`${name} cannot be the name of a new plug-in: ${problem}`);
  if (!/^[a-z][a-z0-9_]{0,39}$/.test(name))
    throw refuse('use lowercase letters, digits and underscores, starting with a letter');
  const file = `plugins/${name}.ts`;
  if (existsSync(join(folder, file))) throw refuse(`${file} already exists: choose another name`);
  const templates = join(extensionPath, 'media', 'templates');
  const code = await readFile(join(templates, 'plugin', `${kind}.ts`), 'utf8');
  const files = [{ path: join(folder, file), text: code.replaceAll('my_plugin', name) }];
  const settings = join(folder, 'plugins', 'tsconfig.json');
  if (!existsSync(settings))
    files.push({ path: settings, text: await readFile(join(templates, 'environment', 'tsconfig.json'), 'utf8') });
  for (const { path, text } of files) {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text, { flag: 'wx' });
  }
  return files.map(({ path }) => path);
}
