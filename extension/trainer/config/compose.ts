// Composes a configuration from files, like Hydra's `defaults` list. The named files are merged in order, and a later
// file overrides an earlier one. `_self_` marks the position of the including file's own keys (last by default). The
// named files are looked up in the folder of the including file first, then in the preset folders.
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ConfigProblem, Location } from './config-error';
import { shown } from './config-error';
import { readBoundedSync } from '../../node/bounded-file';
import { mostYamlBytes } from '../../common/yaml-text';
import { didYouMean } from '../../common/suggest';
import { emptyMap, merge, parseYaml } from './yaml-tree';
import type { MapNode, Tree } from './yaml-tree';

const maxFiles = 100;
/** Valid configuration names. The limit of 200 characters stays below the file-name limit of file systems. */
const nameForm = /^[\w.-]{1,200}$/;
/**
 * Name of the file with verl's defaults, which RAGEN's base.yaml includes first. RAGEN finds the file on Hydra's search
 * path; here the name always refers to the bundled preset.
 */
const verlDefaults = 'ppo_trainer';
/**
 * Name of a base configuration. A file that contains only `custom_envs`, such as RAGEN's envs.yaml, is merged over it.
 */
const underEnvironments = 'base';

export interface Composition {
  tree: MapNode;
  /** Absolute paths of the files read, the entry file first. */
  files: string[];
  /** The same paths in merge order, lowest precedence first. If a file is included twice, its path appears twice. */
  layers: string[];
  /** Whether the entry file has a `defaults` list. */
  hasDefaults: boolean;
}

/** Returns the configuration names in a folder, without `.yaml`, sorted; empty if the folder does not exist. */
export function configNames(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(file => file.endsWith('.yaml'))
      .map(file => basename(file, '.yaml'))
      .sort();
  } catch {
    return [];
  }
}

/**
 * Returns the path of `<name>.yaml` in the first folder that contains an entry of this name. If the entry is not a
 * file, reading it fails later.
 */
export function findConfig(name: string, folders: readonly string[]): string | undefined {
  return nameForm.test(name)
    ? folders.map(folder => join(resolve(folder), `${name}.yaml`)).find(existsSync)
    : undefined;
}

/** Returns the error message for a configuration name that none of the folders contains. */
export function unknownConfig(name: string, folders: readonly string[]): string {
  const names = [...new Set(folders.flatMap(configNames))];
  return `config: there is no configuration ${shown(name)}: ${didYouMean(name, names, `use one of ${names.join(', ')}`)}`;
}

/**
 * Composes the file at `path`. Problems are added to `problems`; the keys that could be read are returned in any case.
 * @param presetFolders folders in which the named files are looked up; the last folder holds the bundled presets
 */
export function compose(path: string, presetFolders: readonly string[], problems: ConfigProblem[]): Composition {
  const files: string[] = [];
  const layers: string[] = [];

  const load = (file: string, from: Location, above: readonly string[]): { tree: MapNode; hasDefaults: boolean } => {
    const empty = { tree: emptyMap({ file }), hasDefaults: false };
    const complain = (location: Location, sentence: string): void => {
      problems.push({ key: '', message: `config: ${sentence}`, ...location });
    };
    if (above.includes(file)) {
      complain(
        from,
        `${basename(file)} includes itself through the defaults lists: remove one of the entries that form this cycle`,
      );
      return empty;
    }
    if (files.length >= maxFiles) {
      if (files.length === maxFiles)
        complain(from, `the defaults lists name more than ${maxFiles} files in total: remove some of their entries`);
      return empty;
    }
    let text: string;
    try {
      text = readBoundedSync(file, { most: mostYamlBytes, within: null }).toString('utf8');
    } catch (error) {
      complain({ file }, `${basename(file)} cannot be read (${(error as Error).message}): check the file`);
      return empty;
    }
    const tree = parseYaml(text, { file }, problems);
    files.push(file);
    if (tree === null || (tree.kind === 'scalar' && tree.value === null)) return empty;
    if (tree.kind !== 'map') {
      complain(tree.location, `${basename(file)} is not a map of keys: write lines of the form "key: value"`);
      return empty;
    }
    const own: MapNode = { ...tree, entries: new Map(tree.entries) };
    const defaults = own.entries.get('defaults');
    own.entries.delete('defaults');
    const environmentsAlone = files.length === 1 && own.entries.size === 1 && own.entries.has('custom_envs');
    if (!defaults && !environmentsAlone) {
      layers.push(file);
      return { tree: own, hasDefaults: false };
    }

    const location = defaults?.location ?? own.location;
    const entries = defaults ? defaultsOf(defaults, complain) : [{ name: underEnvironments, location }];
    if (!entries.some(entry => entry.name === '_self_')) entries.push({ name: '_self_', location });
    const folders = [dirname(file), ...presetFolders];
    const within = defaults ? [...above, file] : above; // `underEnvironments` may include this file again
    let merged: Tree = emptyMap({ file });
    for (const { name, location } of entries) {
      if (name === '_self_') {
        merged = merge(merged, own);
        layers.push(file);
        continue;
      }
      const included = findConfig(name, name === verlDefaults ? presetFolders.slice(-1) : folders);
      if (included) merged = merge(merged, load(included, location, within).tree);
      else problems.push({ key: 'defaults', message: unknownConfig(name, folders), ...location });
    }
    return { tree: merged.kind === 'map' ? merged : own, hasDefaults: true };
  };

  const { tree, hasDefaults } = load(resolve(path), {}, []);
  return { tree, files, layers, hasDefaults };
}

function defaultsOf(
  defaults: Tree,
  complain: (location: Location, sentence: string) => void,
): { name: string; location: Location }[] {
  if (defaults.kind !== 'list') {
    complain(defaults.location, 'defaults is not a list: write defaults: [base]');
    return [];
  }
  return defaults.items.flatMap(item => {
    if (item.kind === 'scalar' && typeof item.value === 'string')
      return [{ name: item.value, location: item.location }];
    complain(
      item.location,
      'an entry of defaults is not a name (config groups are not supported): give the name of a file, without .yaml',
    );
    return [];
  });
}
