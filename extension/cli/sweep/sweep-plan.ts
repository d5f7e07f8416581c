// Expands a sweep file into runs: one run for every combination of configuration, list entry, grid point and seed. Each
// run is an ordinary configuration with overrides. All runs are loaded and checked before the first run starts. A run
// belongs to a plan if its manifest names the sweep and its configuration's hash is in the plan. If a sweep file is
// extended later, finished runs are therefore not repeated.
import { basename, isAbsolute, resolve } from 'node:path';
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { configNames, findConfig } from '../../trainer/config/compose';
import { loadConfig } from '../../trainer/config/load-config';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { didYouMean } from '../../common/suggest';
import { readBoundedSync } from '../../node/bounded-file';
import { mostYamlBytes, yamlValue } from '../../common/yaml-text';
import { installation } from '../../node/installation';
import { claimSchema, type Claim } from '../../run-data/claims/claim-schema';
import { environmentSpecs } from '../../environments/client/environment-specs';
import type { Halving } from '../../run-data/sweep-file';
import { halvingOf, halvingRule } from './halving-rule';

const value: z.ZodType<unknown> = z.union([z.string(), z.number(), z.boolean(), z.null(), z.array(z.unknown())]);
const overrides = z.array(z.string().min(1));
const names = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

const sweepSchema = z
  .strictObject({
    config_name: names.optional().describe('names of the configurations to run'),
    config: names.optional().describe('paths of the configuration files to run, relative to the workspace'),
    overrides: overrides.default([]).describe('overrides that apply to every run of the sweep'),
    grid: z
      .record(z.string().min(1), z.array(value).min(1))
      .default({})
      .describe('values to try, by configuration key; the sweep runs every combination of values'),
    list: z
      .array(z.union([overrides, z.strictObject({ name: z.string().min(1), overrides })]))
      .min(1)
      .optional()
      .describe('lists of overrides; each list is one point of the sweep'),
    seeds: z
      .union([z.int().min(1), z.array(z.int().min(0)).min(1)])
      .optional()
      .describe('values of seed.train, or the number of seeds to use, which are then a million apart'),
    tags: z.array(z.string().min(1)).default([]),
    halving: halvingRule.optional(),
    claim: claimSchema.optional().describe('a published claim, and the tests by which `ragen claims` decides it'),
  })
  .refine(({ config_name, config }) => (config_name === undefined) !== (config === undefined), {
    message: 'give either config_name or config',
  });

/**
 * Difference between the `seed.train` values of two consecutive runs. Each run uses one environment seed per group and
 * step, counting up from seed.train. Runs with at most a million groups over all steps therefore share no seed.
 */
const seedStride = 1_000_000;

/** Maximum number of runs of a sweep file; checking this many configurations takes about 15 seconds. */
const mostRuns = 1000;

/**
 * A point of the sweep, shown as one row of the comparison. The runs of a point have the same values and differ only in
 * their seeds.
 */
export interface SweepPoint {
  /** Name and values of the point, such as `GRPO, rollout_filter_value=0.9`. */
  label: string;
  config: string;
  /** The `name` of the point's list entry; undefined if the entry has none. */
  name?: string;
  /** Values of the keys that the sweep sets, by key. */
  values: Record<string, unknown>;
}

/** One run of the sweep. */
export interface SweepMember {
  /** Index of the run's point in `points`. */
  point: number;
  seed: number;
  configName?: string;
  configFile?: string;
  overrides: string[];
  /** The run's configuration, before the context length is limited to the model's maximum. */
  loaded: Pick<LoadedConfig, 'config' | 'hash' | 'lengthIsOfModel'>;
}

export interface SweepPlan {
  id: string;
  /** Absolute path of the sweep file. */
  file: string;
  /** Overrides of every run that were given in addition to the file. */
  overrides: string[];
  tags: string[];
  claim?: Claim;
  points: SweepPoint[];
  members: SweepMember[];
  /** Keys whose values differ between points. If list entries have names, only keys of the grid are included. */
  keys: string[];
  named: boolean;
  /** Rule that stops points early; null if all points train to their end. */
  halving: Halving | null;
}

export interface SweepSource {
  workspace: string;
  /** Folders in which configurations are looked up by name. */
  presetFolders: readonly string[];
  /** Folders in which sweeps are looked up by name. */
  sweepFolders: readonly string[];
  /** Overrides of every run, applied after the overrides in the sweep file. */
  overrides?: readonly string[];
}

/**
 * Returns the path of a sweep file. `fileOrName` is a path, relative to the workspace, or the name of a file in
 * `sweepFolders`.
 * @throws UserError if the file does not exist
 */
function findSweep(fileOrName: string, { workspace, sweepFolders: folders }: SweepSource): string {
  if (!/\.ya?ml$/.test(fileOrName)) {
    const found = findConfig(fileOrName, folders);
    if (found !== undefined) return found;
    const known = [...new Set(folders.flatMap(configNames))];
    throw new UserError(
      `sweep: there is no sweep ${JSON.stringify(fileOrName)}: ${didYouMean(fileOrName, known, `give a .yaml file or one of ${known.join(', ')}`)}`,
    );
  }
  return isAbsolute(fileOrName) ? fileOrName : resolve(workspace, fileOrName);
}

/**
 * Reads a sweep and checks each of its runs.
 * @throws UserError that names the file, the point and its problem
 */
export function readSweep(fileOrName: string, source: SweepSource): SweepPlan {
  const file = findSweep(fileOrName, source);
  const id = basename(file).replace(/\.ya?ml$/, '');
  const sweep = parseSweep(file);
  const configs = [sweep.config_name ?? sweep.config ?? []].flat();
  const entries = (sweep.list ?? [[]]).map(entry => (Array.isArray(entry) ? { overrides: entry } : entry));
  const gridSizes = Object.values(sweep.grid).map(values => values.length);
  const seedCount = typeof sweep.seeds === 'number' ? sweep.seeds : (sweep.seeds?.length ?? 1);
  const runs = [configs.length, entries.length, ...gridSizes, seedCount].reduce((product, count) => product * count);
  if (runs > mostRuns)
    throw new UserError(
      `sweep: ${file} expands to ${runs} runs (configurations × list × grid × seeds), more than the limit of ${mostRuns}: split it into several files`,
    );
  const grid = Object.entries(sweep.grid).reduce<[string, unknown][][]>(
    (points, [key, values]) =>
      points.flatMap(point => values.map(v => [...point, [key, v] satisfies [string, unknown]])),
    [[]],
  );
  const shorten = shortNames([...Object.keys(sweep.grid), ...entries.flatMap(e => e.overrides.map(keyOf))].map(bare));

  const points: SweepPoint[] = [];
  const members: SweepMember[] = [];
  for (const config of configs)
    for (const entry of entries)
      for (const cell of grid) {
        const name = 'name' in entry ? entry.name : undefined;
        const own = [...entry.overrides, ...cell.map(([key, v]) => `${key}=${written(v)}`)];
        const parts = [
          ...(configs.length > 1 ? [config] : []),
          ...(name !== undefined
            ? [name]
            : entry.overrides.map(text => `${shorten(bare(keyOf(text)))}=${valueOf(text)}`)),
          ...cell.map(([key, v]) => `${shorten(bare(key))}=${written(v)}`),
        ];
        const label = parts.join(', ') || config;
        const load = (seed: number | undefined) => {
          const where = sweep.config_name === undefined ? { configFile: config } : { configName: config };
          const all = [
            ...sweep.overrides,
            ...(source.overrides ?? []),
            ...own,
            ...(seed === undefined ? [] : [`seed.train=${seed}`]),
          ];
          const named = `trainer.experiment_name=${JSON.stringify(`${id} ${label}${seed === undefined ? '' : ` seed ${seed}`}`)}`;
          const loaded = checked(id, label, { ...where, overrides: [...all, named] }, source);
          return { ...where, overrides: [...all, named], loaded };
        };
        const unseeded = load(undefined);
        const first = unseeded.loaded;
        const base = first.config.seed.train;
        for (const seed of countedSeeds(sweep.seeds, base) ?? [undefined]) {
          members.push({ point: points.length, seed: seed ?? base, ...(seed === undefined ? unseeded : load(seed)) });
        }
        const keys = [...entry.overrides.map(keyOf), ...cell.map(([key]) => key)].map(bare);
        points.push({ label, config, name, values: Object.fromEntries(keys.map(key => [key, valueAt(first, key)])) });
      }

  // If only some points set a key, the values of the other points are read from their configurations.
  const varied = [...new Set(points.flatMap(point => Object.keys(point.values)))];
  points.forEach((point, p) => {
    const member = members.find(m => m.point === p)!;
    const missing = varied.filter(key => !Object.hasOwn(point.values, key));
    if (missing.length === 0) return;
    const loaded = checked(id, point.label, member, source);
    for (const key of missing) point.values[key] = valueAt(loaded, key);
  });
  const named = points.some(({ name }) => name !== undefined);
  const differs = (key: string) => new Set(points.map(({ values }) => JSON.stringify(values[key]))).size > 1;
  const keys = (named ? Object.keys(sweep.grid).map(bare) : varied).filter(differs);
  const halving = halvingOf(
    sweep.halving,
    members.map(({ loaded }) => loaded.config),
    id,
  );
  return {
    id,
    file,
    overrides: [...(source.overrides ?? [])],
    tags: sweep.tags,
    claim: sweep.claim,
    points,
    members,
    keys,
    named,
    halving,
  };
}

function parseSweep(file: string): z.infer<typeof sweepSchema> {
  let plain: unknown;
  try {
    plain = yamlValue(readBoundedSync(file, { most: mostYamlBytes, within: null }).toString('utf8'));
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(`sweep: ${file} cannot be read (${reason}): correct the file`, { cause: error });
  }
  const parsed = sweepSchema.safeParse(plain);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const location = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  throw new UserError(`sweep: ${file}: ${location}${issue.message}`);
}

/** Loads one point's configuration and checks it, including its environments. */
function checked(
  id: string,
  label: string,
  where: { configName?: string; configFile?: string; overrides: readonly string[] },
  { workspace, presetFolders }: SweepSource,
): LoadedConfig {
  try {
    const loaded = loadConfig({ ...where, workspace, presetFolders });
    const { es_manager, custom_envs } = loaded.config;
    const tags = [...es_manager.train.env_configs.tags, ...es_manager.val.env_configs.tags];
    environmentSpecs(tags, custom_envs, installation.environments, workspace);
    return loaded;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`sweep ${id}, ${label}: ${error.message}`, { cause: error });
  }
}

function countedSeeds(seeds: number | readonly number[] | undefined, base: number): readonly number[] | undefined {
  if (typeof seeds !== 'number') return seeds;
  return Array.from({ length: seeds }, (_, k) => base + k * seedStride);
}

/** Returns a function that shortens a key to its last part if the last part is unique among `keys`. */
function shortNames(keys: readonly string[]): (key: string) => string {
  const last = (key: string) => key.split('.').at(-1)!;
  const distinct = [...new Set(keys)];
  return key => (distinct.filter(other => last(other) === last(key)).length > 1 ? key : last(key));
}

/** Formats a value as in an override. */
const written = (v: unknown): string =>
  typeof v === 'string' && /^[\w./-]+$/.test(v) && Number.isNaN(Number(v)) && !/^(true|false|null)$/i.test(v)
    ? v
    : JSON.stringify(v);

const keyOf = (override: string): string => override.split('=', 1)[0];
const valueOf = (override: string): string => override.slice(keyOf(override).length + 1);
/** Removes Hydra's prefixes (`+`, `++`, `~`) from a key. */
const bare = (key: string): string => key.replace(/^(\+{1,2}|~)/, '');

function valueAt({ config, resolved }: LoadedConfig, key: string): unknown {
  const walk = (from: unknown): unknown =>
    key
      .split('.')
      .reduce<unknown>(
        (node, part) =>
          typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[part] : undefined,
        from,
      );
  return walk(config) ?? walk(resolved) ?? null;
}
