// Built-in environments as modules: `ragen-workbench/envs/sokoban` is the source of env_type sokoban, so that a user's file can wrap it.
// It is bundled with what imports it and becomes part of that environment's version. Where it looks for files beside itself
// (`import.meta.url`), the worker says where that is, so that no path of this machine gets into the bundle.
import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const prefix = 'ragen-workbench/envs/';

/** The file that a module's name stands for, or undefined. `installation` is the folder that holds `envs` with its registry.json. */
export function builtInSource(installation: string, name: string): string | undefined {
  const registry = join(installation, 'envs', 'registry.json');
  if (!name.startsWith(prefix) || !existsSync(registry)) return undefined;
  const files = JSON.parse(readFileSync(registry, 'utf8')) as Record<string, string>;
  const type = name.slice(prefix.length);
  return Object.hasOwn(files, type) ? join(installation, 'envs', files[type]) : undefined;
}

/** The name under which the worker tells a bundle the URL of the folder of built-in environments. */
export const builtInFolder = '__builtInEnvironments';

/** The text of a built-in environment's file, to be bundled elsewhere; lines stay where they are. */
export function builtInText(installation: string, file: string): string {
  const place = relative(join(installation, 'envs'), file).replaceAll('\\', '/');
  const url = `new URL(${JSON.stringify(place)}, ${builtInFolder}).href`;
  return readFileSync(file, 'utf8').replaceAll('import.meta.url', url);
}
