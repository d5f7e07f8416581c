// Loads a configuration from files and overrides: compose, override, interpolate, validate. All problems are reported
// in one ConfigError.
import { isAbsolute, resolve } from 'node:path';
import { readBoundedSync, RefusedFile } from '../../node/bounded-file';
import { mostYamlBytes } from '../../common/yaml-text';
import { compose, configNames, findConfig, unknownConfig } from './compose';
import { ConfigError } from './config-error';
import type { ConfigProblem } from './config-error';
import { configHash } from './config-hash';
import { interpolate } from './interpolation';
import type { LoadedConfig } from './loaded-config';
import { lengthIsOfModel } from './model-length';
import { applyOverrides } from './overrides';
import { filterNotes } from './algorithm-checks';
import { outputNotes } from './output-notes';
import { correctionNotes } from './rollout-correction-options';
import { adviseOnKey, isKnownKey, validate } from './validate';
import type { IgnoredKey } from './validate';
import { nodeAt, parseYaml, toPlain } from './yaml-tree';
import type { MapNode } from './yaml-tree';

export interface ConfigRequest {
  /** Name of a configuration in `presetFolders`, without `.yaml`; alternative to `configFile`. */
  configName?: string;
  /**
   * A YAML file, absolute or relative to the workspace. The files named in its `defaults` are first looked up in the
   * folder of this file.
   */
  configFile?: string;
  /** Overrides such as `a.b=v`, `+a.b=v`, `++a.b=v` or `~a.b`; applied in order. */
  overrides: readonly string[];
  /** Folders of named configurations; if several folders contain a name, the first of these folders is used. */
  presetFolders: readonly string[];
  /** Absolute path of the workspace. */
  workspace: string;
}

/** Loads and validates a configuration. Throws a ConfigError with all problems. */
export function loadConfig(options: ConfigRequest): LoadedConfig {
  const problems: ConfigProblem[] = [];
  const { tree, files, layers, hasDefaults } = compose(entryFile(options), options.presetFolders, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  const advise = (path: readonly string[], name: string): string => {
    const node = nodeAt(tree, path);
    return adviseOnKey(path, name, node?.kind === 'map' ? [...node.entries.keys()] : []);
  };
  const overridden = applyOverrides(tree, options.overrides, { isKnown: isKnownKey, advise }, problems);
  return finish(overridden, { hasDefaults, sources: files, layers }, problems);
}

/**
 * Applies overrides to a resolved configuration, such as the one in a run manifest. Throws a ConfigError with all
 * problems.
 */
export function overrideConfig(config: Record<string, unknown>, overrides: readonly string[]): LoadedConfig {
  const problems: ConfigProblem[] = [];
  const tree = parseYaml(JSON.stringify(config), {}, problems);
  if (tree?.kind !== 'map')
    throw new ConfigError([
      ...problems,
      { key: '', message: 'config: the stored configuration is not a map of keys: start a new run' },
    ]);
  const known = { isKnown: isKnownKey, advise: (path: readonly string[], name: string) => adviseOnKey(path, name, []) };
  return finish(
    applyOverrides(tree, overrides, known, problems),
    { hasDefaults: true, sources: [], layers: [] },
    problems,
  );
}

function finish(
  tree: MapNode,
  from: { hasDefaults: boolean; sources: string[]; layers: string[] },
  problems: ConfigProblem[],
): LoadedConfig {
  const ignored: IgnoredKey[] = [];
  const interpolated = interpolate(tree, problems);
  const config = validate(interpolated, from, problems, ignored);
  if (config === null || problems.length > 0) throw new ConfigError(problems);
  const plain = (map: MapNode) => toPlain(map) as Record<string, unknown>;
  return {
    config,
    composed: plain(tree),
    resolved: plain(interpolated),
    sources: from.sources,
    ignored,
    notes: [
      ...ignored.map(({ key, reason }) => `config: ${key} ${reason}`),
      ...correctionNotes(config),
      ...outputNotes(config),
      ...filterNotes(config),
    ],
    hash: configHash(config),
    lengthIsOfModel: lengthIsOfModel(interpolated, from.layers),
  };
}

function entryFile({ configFile, configName, presetFolders, workspace }: ConfigRequest): string {
  if (configFile !== undefined) return isAbsolute(configFile) ? configFile : resolve(workspace, configFile);
  const problem = (message: string): ConfigError => new ConfigError([{ key: '', message }]);
  if (configName === undefined)
    throw problem('config: no configuration is given: pass the name of a configuration, or a file');
  const file = findConfig(configName, presetFolders);
  if (file === undefined) throw problem(unknownConfig(configName, presetFolders));
  return file;
}

export interface Preset {
  name: string;
  file: string;
  /** The file's first comment line. */
  description: string;
  /** Reason why the file cannot be read, in one sentence; absent if it can be read. */
  error?: string;
}

/**
 * Returns the runnable configurations (those with a `defaults` list) and the unreadable files, sorted by name. If
 * several folders contain a name, the first of these folders is used.
 */
export function presets(presetFolders: readonly string[]): Preset[] {
  const names = [...new Set(presetFolders.flatMap(configNames))];
  return names.flatMap(name => {
    const file = findConfig(name, presetFolders);
    if (file === undefined) return [];
    let text: string;
    try {
      text = readBoundedSync(file, { most: mostYamlBytes, within: null }).toString('utf8');
    } catch (error) {
      const { message } = error as Error;
      const reason =
        error instanceof RefusedFile ? message : `${file} cannot be read (${message}): check its permissions`;
      return [{ name, file, description: '', error: reason }];
    }
    if (!/^defaults:/m.test(text)) return [];
    return [{ name, file, description: /^#\s*(.*?)\s*$/m.exec(text)?.[1] ?? '' }];
  });
}
