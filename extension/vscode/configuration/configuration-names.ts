// Names that a configuration can refer to, for completion: other configurations (in `defaults`), environments, bundled
// models, and the tags that `custom_envs` defines in the file or in a file that it extends. The names are read from
// disk on request. Must not import `vscode`.
import { readdir } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { jsonOrNothing } from '../../common/json';
import { readBounded } from '../../node/bounded-file';
import { mostYamlBytes, yamlDocument } from '../../common/yaml-text';

/** A name that a configuration can contain, with a description. */
export interface Named {
  name: string;
  detail: string;
}

/** Locations in which names are looked up. */
export interface NameSources {
  extensionPath: string;
  /** Workspace folder of the file. */
  workspace: string;
  /** Absolute path of the configuration. */
  file: string;
}

/** Folders searched for `defaults`, in order of precedence. */
const foldersOf = ({ extensionPath, workspace, file }: NameSources): string[] => [
  dirname(file),
  join(workspace, 'config'),
  join(extensionPath, 'media', 'presets'),
];

/**
 * Returns the names for `defaults` without duplicates. Each name has the first comment line of its file as description.
 */
export async function configurations(sources: NameSources): Promise<Named[]> {
  const found = new Map<string, Named>([
    ['_self_', { name: '_self_', detail: 'position at which this file’s own keys are merged' }],
  ]);
  for (const folder of [...new Set(foldersOf(sources))]) {
    for (const entry of await namesIn(folder)) {
      const name = basename(entry, '.yaml');
      if (extname(entry) !== '.yaml' || found.has(name) || join(folder, entry) === sources.file || name === 'sft')
        continue;
      const text = await readText(join(folder, entry));
      found.set(name, { name, detail: /^#\s*(.*?)\s*$/m.exec(text)?.[1] ?? '' });
    }
  }
  return [...found.values()];
}

/** Returns the names of the built-in environments. */
export async function builtInEnvironments({ extensionPath }: Pick<NameSources, 'extensionPath'>): Promise<Named[]> {
  const registry = jsonOrNothing(await readText(join(extensionPath, 'envs', 'registry.json')));
  return Object.keys(registry ?? {}).map(name => ({ name, detail: 'built in' }));
}

/** Returns the names of the bundled models. */
export async function models({ extensionPath }: Pick<NameSources, 'extensionPath'>): Promise<Named[]> {
  const folders = await namesIn(join(extensionPath, 'media', 'models'));
  return folders.map(name => ({ name, detail: 'bundled' }));
}

/**
 * Returns the tags, with their environments, that are defined in `text` (the unsaved content of the file) and in all
 * files that it extends.
 */
export async function tags(text: string, sources: NameSources): Promise<Named[]> {
  const found = new Map<string, Named>();
  const seen = new Set<string>();
  const read = async (source: string, folder: string): Promise<void> => {
    const plain: unknown = plainOf(source);
    if (!isRecord(plain)) return;
    const defined = isRecord(plain['custom_envs']) ? Object.entries(plain['custom_envs']) : [];
    for (const [name, tag] of defined) {
      const detail = isRecord(tag) && typeof tag['env_type'] === 'string' ? tag['env_type'] : '';
      if (!found.has(name)) found.set(name, { name, detail });
    }
    const bases: unknown[] = Array.isArray(plain['defaults']) ? plain['defaults'] : [];
    for (const base of bases) {
      const files = [folder, ...foldersOf(sources)].map(parent => join(parent, `${String(base)}.yaml`));
      for (const file of files) {
        const inner = await readText(file);
        if (inner === '') continue;
        if (!seen.has(file)) {
          seen.add(file);
          await read(inner, dirname(file));
        }
        break;
      }
    }
  };
  await read(text, dirname(sources.file));
  return [...found.values()];
}

function plainOf(text: string): unknown {
  try {
    return yamlDocument(text, { logLevel: 'silent' }).toJS({ maxAliasCount: 100 });
  } catch {
    return undefined; // the document has too many aliases; the diagnostics report this error
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const readText = async (file: string): Promise<string> =>
  (await readBounded(file, { most: mostYamlBytes, within: null }).catch(() => '')).toString('utf8');
const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).then(
    names => names.sort(),
    () => [],
  );
