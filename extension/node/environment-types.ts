// Provides the types of `ragen-workbench/…` and `zod` to the editor in a workspace without node_modules. `.ragen/types`
// contains one declaration file per importable module. Each file re-exports its module from the installed extension,
// and `paths` in `envs/tsconfig.json` maps the module's name to the file. The files are rewritten when the extension's
// folder changes, which happens with each version.
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readBounded } from './bounded-file';

/**
 * Writes the declarations into a workspace folder. With `onlyAgain`, updates existing declarations and does nothing if
 * `.ragen/types` does not exist.
 */
export async function writeEnvironmentTypes(extensionPath: string, folder: string, onlyAgain = false): Promise<void> {
  const types = join(folder, '.ragen', 'types');
  if (onlyAgain && !existsSync(types)) return;
  for (const [file, text] of await declarations(extensionPath)) {
    const path = join(types, file);
    if (existsSync(path) && (await readBounded(path, { most: 65_536, within: null })).toString('utf8') === text)
      continue;
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

/** Returns each declaration file: its path below `.ragen/types`, and its text. */
async function declarations(extensionPath: string): Promise<[file: string, text: string][]> {
  const all = (path: string) => `export * from ${module(path)};\n`;
  const module = (path: string) => JSON.stringify(path.replaceAll('\\', '/'));
  const envs = join(extensionPath, 'envs');
  const api = (await readdir(join(envs, 'api'), { recursive: true })).filter(name => name.endsWith('.ts'));
  const registry = JSON.parse(await readFile(join(envs, 'registry.json'), 'utf8')) as Record<string, string>;
  return [
    ['zod.d.ts', all(join(extensionPath, 'node_modules', 'zod', 'index.cjs'))],
    ['ragen-workbench/api.d.ts', all(join(envs, 'api', 'environment'))],
    ...api.map((name): [string, string] => {
      const stem = name.slice(0, -'.ts'.length);
      return [`ragen-workbench/api/${stem.replaceAll('\\', '/')}.d.ts`, all(join(envs, 'api', stem))];
    }),
    ...Object.entries(registry).map(([type, file]): [string, string] => {
      const path = join(envs, file.replace(/\.ts$/, ''));
      return [`ragen-workbench/envs/${type}.d.ts`, `export { default } from ${module(path)};\n`];
    }),
  ];
}
