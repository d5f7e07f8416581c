// Creates a run and starts its trainer: a detached Node process that outlives the terminal and the editor. All errors
// in configuration, model and environment code are found before a run folder exists.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, readFileSync, readSync } from 'node:fs';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRegularSync } from '../../protocol/bounded-file';
import { endedBySystem, explainExit } from '../../protocol/process-exit';
import { runFiles } from '../../protocol/run-folder';
import type { Manifest } from '../../protocol/run-folder';
import { UserError } from '../../protocol/user-error';
import { configHash } from '../config/config-hash';
import { loadConfig, overrideConfig } from '../config/load-config';
import type { LoadedConfig } from '../config/loaded-config';
import { fitLength, isMadeOf } from '../config/model-length';
import { installation } from '../installation';
import { configuredModel } from '../evaluation/api-service';
import { openEnvironments } from '../run-environments';
import { requireNoLinks, trustFlag } from '../trusted-run';
import { alreadyTrained, folderGone, readLease } from '../store/lease';
import { openToAppendSync } from '../store/regular-file';
import { openCheckpoint } from '../store/checkpoint';
import { RunFolder } from '../store/run-folder';
import { modelFacts } from './model-facts';
import type { ModelFacts } from './model-facts';

export interface StartOptions {
  configName?: string;
  configFile?: string;
  /** The configuration of an earlier run, instead of a name or a file. */
  from?: Manifest;
  /** The configuration of an earlier run, with `overrides` replacing its own. */
  again?: Manifest;
  overrides: readonly string[];
  workspace: string;
  /** Set for a run that belongs to a sweep. */
  sweep?: Manifest['sweep'];
  tags?: string[];
}

/** Folders of configurations: first the workspace's own, then the bundled presets. */
export const presetFolders = (workspace: string): string[] => [join(workspace, 'config'), installation.presets];

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
    await openCheckpoint(resolve(options.workspace, resume_from_path)); // before there is a run folder
  const file = options.configFile === undefined ? undefined : resolve(options.workspace, options.configFile);
  const source = from ?? again ?? { config_name: options.configName ?? options.configFile ?? '', config_file: file };
  const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
    name: config.trainer.experiment_name,
    config_name: source.config_name,
    ...(source.config_file !== undefined && { config_file: source.config_file }),
    overrides: [...(from?.overrides ?? []), ...options.overrides],
    config: config as unknown as Record<string, unknown>,
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
    environments: await aboutEnvironments(loaded, options.workspace),
    ...(options.sweep && { sweep: options.sweep }),
    ...(options.tags && options.tags.length > 0 && { tags: options.tags }),
  };
  return { folder: await RunFolder.create(options.workspace, about, new Date()), notes: loaded.notes };
}

/** Throws a UserError if a manifest's configuration does not match its hash. */
function refuseOtherHash(run: Manifest | undefined): void {
  if (run && /^[0-9a-f]{64}$/.test(run.config_hash) && configHash(run.config) !== run.config_hash)
    throw new UserError(
      `run ${run.id}: the config of its manifest.json does not match config_hash: restore the file, or give the configuration by --config-name or --config`,
    );
}

/**
 * The configuration of an earlier run with other overrides. If its file or preset still yields the run's configuration,
 * a removed override falls back to the value there; if the file was changed since, the run's own values are the base.
 * Throws ConfigError or UserError.
 */
function loadAgain(run: Manifest, { overrides, workspace }: StartOptions): LoadedConfig {
  const { config_name: configName, config_file: configFile } = run;
  const source = { configName, configFile, workspace, presetFolders: presetFolders(workspace) };
  const before = loadable(() => loadConfig({ ...source, overrides: run.overrides }));
  if (before && isMadeOf(run, before)) return loadConfig({ ...source, overrides });
  const keyOf = (override: string): string => override.replace(/^[+~]*/, '').split('=', 1)[0];
  const given = new Set(overrides.map(keyOf));
  const gone = run.overrides.find(override => !given.has(keyOf(override)));
  if (gone !== undefined)
    throw new UserError(
      `run ${run.id}: ${configFile ?? configName} has changed since the run, so ${keyOf(gone)} cannot fall back to its value there: give it a value`,
    );
  const changed = overrides.filter(override => !run.overrides.includes(override));
  return overrideConfig(
    run.config,
    changed.map(override => override.replace(/^\+(?!\+)/, '++')),
  );
}

/** A configuration; undefined if it cannot be loaded (any more). */
function loadable(load: () => LoadedConfig): LoadedConfig | undefined {
  try {
    return load();
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** Handle of a trainer's process; only the process that started it can observe how it ended. */
export interface TrainerProcess {
  /** Undefined if unknown. */
  readonly pid: number | undefined;
  /** Null while it runs, and if its end was not observed. */
  ended(): { code: number | null; signal: NodeJS.Signals | null } | null;
}

/** The trainer of a run ended before it served the run; the message is its own if it left one. */
export class TrainerEnded extends UserError {}

/**
 * Starts the trainer of a run and waits until it serves the run (or has finished). The trainer executes what the
 * manifest names, as read here: the caller has created the run or checked that it is trusted.
 * @throws UserError while another trainer serves the run, TrainerEnded if the new one fails at once
 */
export async function startTrainer(
  folder: RunFolder,
  workspace: string,
  args: readonly string[],
): Promise<TrainerProcess> {
  const other = readLease(folder.path);
  if (other?.live) throw new UserError(alreadyTrained(folder.id, folder.path, other.lease));
  requireNoLinks(folder);
  const earlier = folder.readStatus()?.updated;
  const logFile = openToAppendSync(folder.file(runFiles.log));
  const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [installation.trainer, '--run', folder.path, '--workspace', workspace, trustFlag, folder.manifestSha256, ...args],
    {
      cwd: workspace,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', logFile],
      env: { ...(process.versions.electron ? process.env : env), ORT_DISABLE_TELEMETRY: '1' },
    },
  );
  closeSync(logFile);
  child.unref();
  let failed: Error | undefined;
  child.once('error', error => (failed = error));
  const trainer: TrainerProcess = {
    pid: child.pid,
    ended: () =>
      child.exitCode === null && child.signalCode === null ? null : { code: child.exitCode, signal: child.signalCode },
  };
  for (;;) {
    const lease = readLease(folder.path);
    // The lease alone is not enough: the trainer checks the checkpoint under the lease before it writes a status.
    if (lease?.live && lease.lease?.pid === child.pid && folder.readStatus()?.updated !== earlier) return trainer;
    if (failed) throw new TrainerEnded(`trainer: ${process.execPath} does not start: ${failed.message}`);
    const end = trainer.ended();
    if (end?.code === 0) return trainer;
    if (end) {
      const status = folder.readStatus();
      const own = status?.updated === earlier ? undefined : status?.error; // ignore an earlier trainer's error
      throw new TrainerEnded(own ?? endBeforeServing(folder, child.pid, end));
    }
    await sleep(20);
  }
}

type End = NonNullable<ReturnType<TrainerProcess['ended']>>;

/** Why a trainer that left no error in the status ended: the last error in its log, or its exit. */
function endBeforeServing(folder: RunFolder, pid: number | undefined, end: End): string {
  const log = folder.file(runFiles.log);
  // A trainer that ends itself at once does so by a signal, after a fatal error in its log.
  const said = lastError(folder, pid, endedBySystem(end.code, end.signal) ? levels.fatal : levels.error);
  return (
    said ??
    `trainer of ${folder.id}: it ${explainExit(end.code, end.signal)} (before it served the run; its log is ${log})`
  );
}

/** pino's log levels: an error, and an error that ended the process at once. */
const levels = { error: 50, fatal: 60 };

/** The last error of at least this level that the process logged. */
const lastError = (folder: RunFolder, pid: number | undefined, level: number): string | undefined =>
  logTail(folder)
    .split('\n')
    .flatMap(line => errorOf(line, pid, level) ?? [])
    .at(-1);

/** Bytes at the log's end that are searched for the last error. */
const logTailBytes = 2 ** 20;

/** The end of a run's log; empty if it is not a regular file of the run folder. */
function logTail(folder: RunFolder): string {
  let fd: number | undefined;
  try {
    fd = openRegularSync(folder.file(runFiles.log), folder.path);
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, logTailBytes));
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, size - bytes.length));
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Milliseconds to wait for the exit event of a trainer that is gone. */
const reapMs = 1000;

/**
 * Why a trainer ended that served its run and left it unfinished: its fatal error, or its signal or exit code if this
 * process started it and observed its end.
 */
export async function unexplainedEnd(folder: RunFolder, trainer: TrainerProcess): Promise<string> {
  for (const deadline = performance.now() + reapMs; trainer.ended() === null && performance.now() < deadline;)
    await sleep(20);
  if (!existsSync(folder.path)) return folderGone(folder);
  const log = folder.file(runFiles.log);
  const end = trainer.ended();
  const said = lastError(folder, trainer.pid, levels.fatal);
  if (said !== undefined) return said;
  return end
    ? `trainer of ${folder.id}: it ${explainExit(end.code, end.signal)} (log: ${log}; resume it with ragen resume ${folder.id})`
    : `trainer of ${folder.id}: it exited unexpectedly: see ${log}, then ragen resume ${folder.id}`;
}

/** The message of a log line, if it is an error of at least `level` that this process logged. */
function errorOf(line: string, pid: number | undefined, level: number): string | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const entry = JSON.parse(line) as { level?: number; pid?: number; msg?: string };
    return entry.pid === pid && entry.level !== undefined && entry.level >= level ? entry.msg : undefined;
  } catch {
    return undefined; // output of an environment
  }
}

/** Builds and loads every environment once, so that errors in their code are found before the run starts. */
async function aboutEnvironments({ config }: LoadedConfig, workspace: string): Promise<Manifest['environments']> {
  const { train, val } = config.es_manager;
  const tags = [...(config.trainer.val_only ? [] : train.env_configs.tags), ...val.env_configs.tags];
  const { environments, loaded } = await openEnvironments(config, tags, workspace, () => undefined);
  await environments.stop();
  return loaded.map(({ tag, name, source, version }) => ({ tag, name, source, version }));
}

/** The facts about the model. A model behind an API is identified by its name; its key must be set. */
async function modelOf({ config }: LoadedConfig, workspace: string): Promise<ModelFacts> {
  if (config.model_config === null || !config.trainer.val_only) return modelFacts(config.model_path, workspace);
  const { model } = configuredModel(config, process.env);
  const path = `${model.provider_name}:${model.model_name}`;
  return { model: { path, sha256: '', parameters: 0 }, maxPositions: Infinity };
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

/** Absolute path of the workspace: the given folder, else the current directory. */
export const workspaceOf = (folder: string | undefined): string => resolve(folder ?? process.cwd());
