// Makes a run and starts its trainer: a detached Node process that outlives the terminal and the editor. Everything that can be wrong
// with configuration, model or environment code is found here, before there is a run folder.
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { arch, cpus, platform, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runFiles } from '../../protocol/run-folder';
import type { Manifest } from '../../protocol/run-folder';
import { UserError } from '../../protocol/user-error';
import { loadConfig, overrideConfig } from '../config/load-config';
import type { LoadedConfig } from '../config/load-config';
import { resolveModelPath } from '../config/model-path';
import { installation } from '../installation';
import { checkModelFolder } from '../models/model-folder';
import { EnvironmentProcess } from '../rollout/environment-process';
import { environmentSpecs } from '../rollout/environment-specs';
import { digestFile } from '../store/files';
import { readLease } from '../store/lease';
import { RunFolder } from '../store/run-folder';

export interface StartOptions {
  configName?: string;
  configFile?: string;
  /** The configuration of an earlier run, in place of a name or a file. */
  from?: Manifest;
  overrides: readonly string[];
  workspace: string;
}

/** Where configurations are looked up: the workspace's own folder first, then the presets that come along. */
export const presetFolders = (workspace: string): string[] => [join(workspace, 'config'), installation.presets];

/** Resolves the configuration and makes the run folder. Throws ConfigError or UserError. */
export async function makeRun(options: StartOptions): Promise<{ folder: RunFolder; notes: string[] }> {
  const { from } = options;
  const loaded = from
    ? overrideConfig(from.config, options.overrides)
    : loadConfig({ ...options, presetFolders: presetFolders(options.workspace) });
  const { config } = loaded;
  const modelFolder = resolveModelPath(config.model_path, {
    workspace: options.workspace,
    modelFolders: [installation.models],
  });
  const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
    name: config.trainer.experiment_name,
    config_name: from?.config_name ?? options.configName ?? options.configFile ?? '',
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
    model: await aboutModel(config.model_path, modelFolder),
    environments: await aboutEnvironments(loaded, options.workspace),
  };
  return { folder: await RunFolder.create(options.workspace, about, new Date()), notes: loaded.notes };
}

/**
 * Starts the trainer of a run and waits until it serves the run (or has done so and ended).
 * @throws UserError while another trainer serves the run, and with the trainer's own sentence when it fails at once
 */
export async function startTrainer(folder: RunFolder, workspace: string, args: readonly string[]): Promise<void> {
  const other = readLease(folder.path);
  if (other?.live)
    throw new UserError(
      `run ${folder.id} is already being trained by process ${other.lease?.pid}: stop it first or resume after it ended`,
    );
  const earlier = folder.readStatus()?.updated;
  const logFile = openSync(folder.file(runFiles.log), 'a');
  const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    [installation.trainer, '--run', folder.path, '--workspace', workspace, ...args],
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
  for (;;) {
    const lease = readLease(folder.path);
    // The lease alone is not enough: the checkpoint to go on from is looked at under it, before the trainer writes a status.
    if (lease?.live && lease.lease?.pid === child.pid && folder.readStatus()?.updated !== earlier) return;
    if (failed) throw new UserError(`trainer: ${process.execPath} does not start: ${failed.message}`);
    if (child.exitCode === 0) return;
    if (child.exitCode !== null || child.signalCode !== null) {
      const status = folder.readStatus();
      const own = status?.updated === earlier ? undefined : status?.error; // an earlier trainer's is old news
      throw new UserError(own ?? endOfTrainer(folder, child.pid, child.signalCode));
    }
    await sleep(20);
  }
}

/** Why a trainer is gone that left no word in the status: its signal, or the last error in its log. */
function endOfTrainer(folder: RunFolder, pid: number | undefined, signal: NodeJS.Signals | null): string {
  const log = folder.file(runFiles.log);
  if (signal === 'SIGKILL')
    return `trainer of ${folder.id}: killed (SIGKILL), most likely for memory: lower the micro-batch sizes or max_model_len`;
  if (signal) return `trainer of ${folder.id}: ended by ${signal}: see ${log}`;
  const errors = readFileSync(log, 'utf8')
    .split('\n')
    .flatMap(line => errorOf(line, pid) ?? []);
  return errors.at(-1) ?? `trainer of ${folder.id}: it ended before it served the run: see ${log}`;
}

/** The message of a line of the log, where it is an error that this process logged. */
function errorOf(line: string, pid: number | undefined): string | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const entry = JSON.parse(line) as { level?: number; pid?: number; msg?: string };
    return entry.pid === pid && entry.level !== undefined && entry.level >= 50 ? entry.msg : undefined;
  } catch {
    return undefined; // what an environment printed
  }
}

async function aboutModel(path: string, folder: string): Promise<Manifest['model']> {
  const { parameters } = await checkModelFolder(folder);
  const hash = createHash('sha256');
  for (const name of readdirSync(folder)
    .filter(file => file.endsWith('.safetensors'))
    .sort())
    hash.update(`${name} ${(await digestFile(join(folder, name))).sha256}\n`);
  return { path, sha256: hash.digest('hex'), parameters };
}

/** Builds and loads every environment once, so that a mistake in their code ends the start and not the run. */
async function aboutEnvironments({ config }: LoadedConfig, workspace: string): Promise<Manifest['environments']> {
  const { train, val } = config.es_manager;
  const tags = [...train.env_configs.tags, ...val.env_configs.tags];
  const specs = environmentSpecs(tags, config.custom_envs, installation.environments, workspace);
  const process = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    stepTimeoutMs: config.workbench.step_timeout_ms,
    onNotice: () => undefined,
  });
  try {
    const { environments, error } = await process.load(specs);
    if (error) throw new UserError(error.message);
    return environments.map(({ tag, name, source, version }) => ({ tag, name, source, version }));
  } finally {
    await process.stop();
  }
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

/** Absolute path of the workspace: the folder given, else where the terminal stands. */
export const workspaceOf = (folder: string | undefined): string => resolve(folder ?? process.cwd());
