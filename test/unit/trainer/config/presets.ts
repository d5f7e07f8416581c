// Location of the bundled presets, and helpers to load them in tests.
import { resolve } from 'node:path';
import { ConfigError } from '../../../../extension/trainer/config/config-error';
import type { ConfigProblem } from '../../../../extension/trainer/config/config-error';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import type { LoadedConfig } from '../../../../extension/trainer/config/loaded-config';

export const repository = resolve(import.meta.dirname, '../../../..');
export const presetFolder = `${repository}/media/presets`;
export const sweepFolder = `${repository}/media/sweeps`;

export const load = (configName: string, ...overrides: string[]): LoadedConfig =>
  loadConfig({ configName, overrides, presetFolders: [presetFolder], workspace: repository });

/** The problems of the ConfigError that `action` throws; fails if it throws none. */
export function problemsOf(action: () => unknown): readonly ConfigProblem[] {
  try {
    action();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('no ConfigError was thrown');
}

export const messages = (configName: string, ...overrides: string[]): string[] =>
  problemsOf(() => load(configName, ...overrides)).map(problem => problem.message);

/** Dotted keys and values of all scalars and lists in `value`. */
export function flat(value: unknown, prefix = ''): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { [prefix]: value };
  return Object.assign({}, ...Object.entries(value).map(([k, v]) => flat(v, prefix ? `${prefix}.${k}` : k)));
}

/** Keys whose values in a configuration differ from base, except its name. */
export function beyondBase(name: string): Record<string, unknown> {
  const base = flat(load('base').config);
  return Object.fromEntries(
    Object.entries(flat(load(name).config)).filter(
      ([key, value]) =>
        !/^(trainer\.experiment_name|model_info\b.*)$/.test(key) && JSON.stringify(value) !== JSON.stringify(base[key]),
    ),
  );
}
