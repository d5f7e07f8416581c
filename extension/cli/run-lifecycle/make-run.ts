// Creates a run: resolves its configuration and writes its manifest. All errors in configuration, model and environment
// code are found before a run folder exists.
import { readFileSync } from 'node:fs';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import type { Manifest } from '../../run-data/run-manifest';
import { exceedsMemory, type PlannedMemory } from '../../run-data/memory-shortage';
import { plannedMemory } from '../../trainer/plan/run-plan';
import { UserError } from '../../common/user-error';
import { configHash } from '../../trainer/config/config-hash';
import { loadConfig, overrideConfig } from '../../trainer/config/load-config';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { fitLength, isMadeOf } from '../../trainer/config/model-length';
import type { RunConfig } from '../../trainer/config/schema';
import { installation } from '../../node/installation';
import { configuredModel } from '../../trainer/evaluation/api-service';
import { openEnvironments } from '../../trainer/run/run-environments';
import { usesTeacher } from '../../trainer/plan/memory-input';
import { checkTeacher } from '../../trainer/distillation/open-teacher';
import { openCheckpoint } from '../../trainer/store/checkpoint';
import { RunFolder } from '../../trainer/store/run-folder';
import { presetFolders } from '../options/workspace';
import { modelFacts, teacherFacts } from '../model-files/model-facts';
import type { ModelFacts } from '../model-files/model-facts';

export interface StartOptions {
  configName?: string;
  configFile?: string;
  /**
   * An earlier run. Its resolved configuration replaces the configuration that a name or a file would give, and
   * `overrides` are applied to this resolved configuration.
   */
  from?: Manifest;
  /**
   * An earlier run. Its configuration is used, but `overrides` replace the overrides with which the earlier run was
   * made.
   */
  again?: Manifest;
  overrides: readonly string[];
  workspace: string;
  /** The sweep to which the run belongs; absent for other runs. */
  sweep?: Manifest['sweep'];
  /** The run and the checkpoint from which this run is forked; absent for other runs. */
  parent?: Manifest['parent'];
  tags?: string[];
  /**
   * Called before the run folder is created, if the plan of the run exceeds the available memory. If the returned promise
   * rejects, no run is created. Without this function, the memory is not checked.
   */
  onShortage?(memory: PlannedMemory): Promise<void> | void;
}

/** Resolves the configuration and creates the run folder. Throws ConfigError or UserError. */
export async function makeRun(options: StartOptions): Promise<{ folder: RunFolder; notes: string[] }> {
  const { from, again } = options;
  refuseOtherHash(from ?? again);
  const load = (more: readonly string[]): LoadedConfig => {
    const overrides = [...options.overrides, ...more];
    if (from) return overrideConfig(from.config, overrides);
    if (again) return loadAgain(again, { ...options, overrides });
    return loadConfig({ ...options, overrides, presetFolders: presetFolders(options.workspace) });
  };
  const given = load([]);
  const { model, maxPositions } = await modelOf(given, options.workspace);
  const loaded = fitLength(given, maxPositions, override => load([override]));
  const { config } = loaded;
  const { resume_mode, resume_from_path } = config.trainer;
  if (resume_mode === 'resume_path' && resume_from_path !== null)
    await openCheckpoint(resolve(options.workspace, resume_from_path)); // fails before a run folder is created
  const teacher = await teacherOf(config, options.workspace);
  checkTeacher(config, options.workspace, process.env);
  const memory = options.onShortage ? await plannedMemory(config, options.workspace) : null;
  if (memory && exceedsMemory(memory)) await options.onShortage?.(memory);
  const file = options.configFile === undefined ? undefined : resolve(options.workspace, options.configFile);
  const source = from ?? again ?? { config_name: options.configName ?? options.configFile ?? '', config_file: file };
  const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
    name: config.trainer.experiment_name,
    config_name: source.config_name,
    ...(source.config_file !== undefined && { config_file: source.config_file }),
    overrides: [...(from?.overrides ?? []), ...options.overrides],
    config,
    config_hash: loaded.hash,
    seeds: { train: config.seed.train, val: config.seed.val },
    versions: versions(),
    hardware: {
      cpu: cpus()[0]?.model ?? 'unknown',
      cores: cpus().length,
      memory_gb: round(totalmem() / 2 ** 30),
      platform: `${platform()}-${arch()}`,
    },
    model,
    ...(teacher && { teacher }),
    environments: await aboutEnvironments(loaded, options.workspace),
    ...(options.sweep && { sweep: options.sweep }),
    ...(options.parent && { parent: options.parent }),
    ...(options.tags && options.tags.length > 0 && { tags: options.tags }),
  };
  return { folder: await RunFolder.create(options.workspace, about, new Date()), notes: loaded.notes };
}

/** Throws a UserError if the configuration in a manifest does not match the hash in the manifest. */
export function refuseOtherHash(run: Manifest | undefined): void {
  if (run && /^[0-9a-f]{64}$/.test(run.config_hash) && configHash(run.config) !== run.config_hash)
    throw new UserError(
      `run ${run.id}: in manifest.json, "config" does not match config_hash: restore the file, or give the configuration by --config-name or --config`,
    );
}

/**
 * Loads the configuration of an earlier run with other overrides. If the run's file or preset still resolves to the
 * run's configuration, the overrides are applied to that file. A key whose override was removed then has the file's
 * value. If the file has changed, the overrides are applied to the run's resolved values, and removing an override is
 * an error. Throws ConfigError or UserError.
 */
export function loadAgain(
  run: Manifest,
  { overrides, workspace }: Pick<StartOptions, 'overrides' | 'workspace'>,
): LoadedConfig {
  const { config_name: configName, config_file: configFile } = run;
  const source = { configName, configFile, workspace, presetFolders: presetFolders(workspace) };
  const before = loadable(() => loadConfig({ ...source, overrides: run.overrides }));
  if (before && isMadeOf(run, before)) return loadConfig({ ...source, overrides });
  const keyOf = (override: string): string => override.replace(/^[+~]*/, '').split('=', 1)[0];
  const given = new Set(overrides.map(keyOf));
  const gone = run.overrides.find(override => !given.has(keyOf(override)));
  if (gone !== undefined)
    throw new UserError(
      `run ${run.id}: ${configFile ?? configName} has changed since the run, so the value of ${keyOf(gone)} may differ from its value in the run: add an override for this key`,
    );
  const changed = overrides.filter(override => !run.overrides.includes(override));
  return overrideConfig(
    run.config,
    changed.map(override => override.replace(/^\+(?!\+)/, '++')),
  );
}

/** Returns the configuration that `load` returns; undefined if `load` throws a UserError. */
function loadable(load: () => LoadedConfig): LoadedConfig | undefined {
  try {
    return load();
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/**
 * Builds and loads every environment once, so that errors in the environments' code are found before the run starts.
 */
async function aboutEnvironments({ config }: LoadedConfig, workspace: string): Promise<Manifest['environments']> {
  const { train, val } = config.es_manager;
  const tags = [...(config.trainer.val_only ? [] : train.env_configs.tags), ...val.env_configs.tags];
  const { environments, loaded } = await openEnvironments(config, tags, workspace, () => undefined);
  await environments.stop();
  return loaded.map(({ tag, name, source, version }) => ({ tag, name, source, version }));
}

/** Returns the facts about the model. A model behind an API is identified by its name; the API key must be set. */
async function modelOf({ config }: LoadedConfig, workspace: string): Promise<ModelFacts> {
  if (config.model_config === null || !config.trainer.val_only)
    return modelFacts(config.model_path, workspace, config.workbench.engine);
  const { model } = configuredModel(config, process.env);
  const path = `${model.provider_name}:${model.model_name}`;
  return { model: { path, sha256: '', parameters: 0 }, maxPositions: Infinity };
}

/** Returns the facts about a teacher on this machine; undefined without one. */
async function teacherOf(config: RunConfig, workspace: string): Promise<Manifest['teacher']> {
  const teacher = config.workbench.distillation?.teacher ?? null;
  return teacher === null || !usesTeacher(config) ? undefined : teacherFacts(teacher, workspace);
}

function versions(): Record<string, string> {
  const version = (file: string): string => (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  return {
    ragen_workbench: version(join(installation.root, 'package.json')),
    onnxruntime: version(join(installation.root, 'node_modules', 'onnxruntime-node', 'package.json')),
    node: process.versions.node,
  };
}

const round = (x: number): number => Math.round(x * 10) / 10;
