// Makes built-in environments importable: `ragen-workbench/envs/sokoban` resolves to the source of env_type sokoban, so
// that a user's file can wrap it. The source is bundled with the importing file and is part of that environment's
// version. `import.meta.url` in it is replaced by a URL that the worker supplies at run time, so the bundle contains no
// path of the machine.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const prefix = 'ragen-workbench/envs/';

/**
 * Returns the source file for a module name, or undefined. `installation` is the folder that holds
 * `envs/registry.json`.
 */
export function builtInSource(installation: string, name: string): string | undefined {
  const registry = join(installation, 'envs', 'registry.json');
  if (!name.startsWith(prefix) || !existsSync(registry)) return undefined;
  const files = JSON.parse(readFileSync(registry, 'utf8')) as Record<string, string>;
  const type = name.slice(prefix.length);
  return Object.hasOwn(files, type) ? join(installation, 'envs', files[type]) : undefined;
}

/** Name of the variable through which the worker passes the URL of the built-in environments' folder to a bundle. */
export const builtInFolder = '__builtInEnvironments';

/** Returns the text of a built-in environment's file for bundling. Line numbers do not change. */
export function builtInText(installation: string, file: string): string {
  const path = relative(join(installation, 'envs'), file).replaceAll('\\', '/');
  const url = `new URL(${JSON.stringify(path)}, ${builtInFolder}).href`;
  return readFileSync(file, 'utf8').replaceAll('import.meta.url', url);
}
