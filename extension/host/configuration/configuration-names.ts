// The names that a configuration can refer to, for completion: other configurations in `defaults`, environments, tags of `custom_envs` (the file's
// own and those of what it builds on), models that come along. Read off the disk when asked. No `vscode` here.
import { jsonOrNothing } from '../../protocol/json';
import { readBounded } from '../../protocol/bounded-file';
import { mostYamlBytes, yamlDocument } from '../../protocol/yaml-text';
import { readdir } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';

/** A name and what is known of it. */
export interface Named {
  name: string;
  detail: string;
}

/** Where names are looked up. */
export interface NameSources {
  extensionPath: string;
  /** Folder of the workspace that the file is in. */
  workspace: string;
  /** Absolute path of the configuration. */
  file: string;
}

/** Folders in which `defaults` are looked up, the first first. */
const foldersOf = ({ extensionPath, workspace, file }: NameSources): string[] => [
  dirname(file),
  join(workspace, 'config'),
  join(extensionPath, 'media', 'presets'),
];

/** What `defaults` may name, each once, with the first comment line of its file. */
export async function configurations(sources: NameSources): Promise<Named[]> {
  const found = new Map<string, Named>([['_self_', { name: '_self_', detail: 'the place of this file’s own keys' }]]);
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

/** Names of the built-in environments. */
export async function builtInEnvironments({ extensionPath }: Pick<NameSources, 'extensionPath'>): Promise<Named[]> {
  const registry = jsonOrNothing(await readText(join(extensionPath, 'envs', 'registry.json')));
  return Object.keys((registry ?? {}) as object).map(name => ({ name, detail: 'built in' }));
}

/** Names of the models that come along. */
export async function models({ extensionPath }: Pick<NameSources, 'extensionPath'>): Promise<Named[]> {
  const folders = await namesIn(join(extensionPath, 'media', 'models'));
  return folders.map(name => ({ name, detail: 'comes along' }));
}

/** The tags that `text`, the file as it is being written, and all that it builds on define, with their environments. */
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
      const files = [folder, ...foldersOf(sources)].map(place => join(place, `${String(base)}.yaml`));
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
    return undefined; // aliases without end: the check says so
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
