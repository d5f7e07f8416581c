// Puts a configuration together from files, as Hydra does with a `defaults` list: the files named are merged in order, later ones
// win, `_self_` marks the file's own place (last unless said). Names are looked up beside the file first, then in the preset folders.
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { ConfigProblem, Place } from './config-error';
import { shown } from './config-error';
import { readBoundedSync } from '../../protocol/bounded-file';
import { mostYamlBytes } from '../../protocol/yaml-text';
import { didYouMean } from '../../protocol/suggest';
import { emptyMap, merge, parseYaml } from './yaml-tree';
import type { MapNode, Tree } from './yaml-tree';

const maxFiles = 100;
/** Longer ones no file system takes. */
const nameForm = /^[\w.-]{1,200}$/;
/** verl's own defaults, which RAGEN's base names first and finds on Hydra's search path: always the preset of that name. */
const verlDefaults = 'ppo_trainer';
/** What a file that holds environments alone, such as RAGEN's envs.yaml, is laid over. */
const underEnvironments = 'base';

export interface Composition {
  tree: MapNode;
  /** Absolute paths of the files read, the entry first. */
  files: string[];
  /** The same paths as they were merged, those that win last; a file that is included twice is there twice. */
  layers: string[];
  /** The entry file has a `defaults` list. */
  hasDefaults: boolean;
}

/** Names of the configurations in a folder, without `.yaml`, sorted; empty when there is no such folder. */
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

/** The file `<name>.yaml` in the first folder that has it; what is no regular file is found too, and refused when it is read. */
export function findConfig(name: string, folders: readonly string[]): string | undefined {
  return nameForm.test(name)
    ? folders.map(folder => join(resolve(folder), `${name}.yaml`)).find(existsSync)
    : undefined;
}

/** The sentence about a name that no folder has. */
export function unknownConfig(name: string, folders: readonly string[]): string {
  const names = [...new Set(folders.flatMap(configNames))];
  return `config: there is no configuration ${shown(name)}: ${didYouMean(name, names, `use one of ${names.join(', ')}`)}`;
}

/**
 * Composes the file at `path`. Problems are added to `problems`; what could be read is returned all the same.
 * @param presetFolders where names are looked up; the last is that of the shipped presets
 */
export function compose(path: string, presetFolders: readonly string[], problems: ConfigProblem[]): Composition {
  const files: string[] = [];
  const layers: string[] = [];

  const load = (file: string, from: Place, above: readonly string[]): { tree: MapNode; hasDefaults: boolean } => {
    const empty = { tree: emptyMap({ file }), hasDefaults: false };
    const complain = (place: Place, sentence: string): void => {
      problems.push({ key: '', message: `config: ${sentence}`, ...place });
    };
    if (above.includes(file)) {
      complain(from, `${basename(file)} includes itself through defaults: remove one of the entries`);
      return empty;
    }
    if (files.length >= maxFiles) {
      if (files.length === maxFiles) complain(from, `defaults name more than ${maxFiles} files: remove some`);
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
      complain(tree.place, `${basename(file)} is not a map of keys: write it as key: value lines`);
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

    const place = defaults?.place ?? own.place;
    const entries = defaults ? defaultsOf(defaults, complain) : [{ name: underEnvironments, place }];
    if (!entries.some(entry => entry.name === '_self_')) entries.push({ name: '_self_', place });
    const folders = [dirname(file), ...presetFolders];
    const within = defaults ? [...above, file] : above; // RAGEN's base includes envs.yaml in its turn
    let merged: Tree = emptyMap({ file });
    for (const { name, place } of entries) {
      if (name === '_self_') {
        merged = merge(merged, own);
        layers.push(file);
        continue;
      }
      const included = findConfig(name, name === verlDefaults ? presetFolders.slice(-1) : folders);
      if (included) merged = merge(merged, load(included, place, within).tree);
      else problems.push({ key: 'defaults', message: unknownConfig(name, folders), ...place });
    }
    return { tree: merged.kind === 'map' ? merged : own, hasDefaults: true };
  };

  const { tree, hasDefaults } = load(resolve(path), {}, []);
  return { tree, files, layers, hasDefaults };
}

function defaultsOf(
  defaults: Tree,
  complain: (place: Place, sentence: string) => void,
): { name: string; place: Place }[] {
  if (defaults.kind !== 'list') {
    complain(defaults.place, 'defaults is not a list: write defaults: [base]');
    return [];
  }
  return defaults.items.flatMap(item => {
    if (item.kind === 'scalar' && typeof item.value === 'string') return [{ name: item.value, place: item.place }];
    complain(
      item.place,
      'an entry of defaults is not a name (config groups are not supported): name a file without .yaml',
    );
    return [];
  });
}
