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
import { loadConfig } from '../config/load-config';
import type { LoadedConfig } from '../config/load-config';
import { resolveModelPath } from '../config/model-path';
import { installation } from '../installation';
import { elements, parameterSpecs, parseDecoderConfig } from '../models/decoder-config';
import { EnvironmentProcess } from '../rollout/environment-process';
import { environmentSpecs } from '../rollout/environment-specs';
import { digestFile } from '../store/files';
import { readLease } from '../store/lease';
import { RunFolder } from '../store/run-folder';

export interface StartOptions {
  configName?: string;
  configFile?: string;
  overrides: readonly string[];
  workspace: string;
}

/** Where configurations are looked up: the workspace's own folder first, then the presets that come along. */
export const presetFolders = (workspace: string): string[] => [join(workspace, 'config'), installation.presets];

/** Resolves the configuration and makes the run folder. Throws ConfigError or UserError. */
export async function makeRun(options: StartOptions): Promise<{ folder: RunFolder; notes: string[] }> {
  const loaded = loadConfig({ ...options, presetFolders: presetFolders(options.workspace) });
  const { config } = loaded;
  const modelFolder = resolveModelPath(config.model_path, {
    workspace: options.workspace,
    modelFolders: [installation.models],
  });
  const about: Omit<Manifest, 'schema' | 'id' | 'created'> = {
    name: config.trainer.experiment_name,
    config_name: options.configName ?? options.configFile ?? '',
    overrides: [...options.overrides],
    config: config as unknown as Record<string, unknown>,
    config_hash: loaded.hash,
    seeds: { train: config.seed.train, val: config.seed.val },
    versions: versions(),
    hardware: { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, memory_gb: round(totalmem() / 2 ** 30), platform: `${platform()}-${arch()}` },
    model: await aboutModel(config.model_path, modelFolder),
    environments: await aboutEnvironments(loaded, options.workspace),
  };
  return { folder: await RunFolder.create(options.workspace, about, new Date()), notes: loaded.notes };
}

/**
 * Starts the trainer of a run and waits until it serves the run.
 * @throws UserError with the trainer's own sentence when it fails at once
 */
export async function startTrainer(folder: RunFolder, workspace: string, args: readonly string[]): Promise<void> {
  const logFile = openSync(folder.file(runFiles.log), 'a');
  const { ELECTRON_RUN_AS_NODE: _, ...env } = process.env;
  const child = spawn(process.execPath, [installation.trainer, '--run', folder.path, '--workspace', workspace, ...args], {
    cwd: workspace,
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'ignore', logFile],
    env: { ...(process.versions.electron ? process.env : env), ORT_DISABLE_TELEMETRY: '1' },
  });
  closeSync(logFile);
  child.unref();
  let failed: Error | undefined;
  child.once('error', error => (failed = error));
  for (;;) {
    const lease = readLease(folder.path);
    if (lease?.live && lease.lease?.pid === child.pid) return;
    if (failed) throw new UserError(`trainer: ${process.execPath} does not start: ${failed.message}`);
    if (child.exitCode !== null || child.signalCode !== null) throw new UserError(endOfTrainer(folder, child.signalCode));
    await sleep(20);
  }
}

/** Why a trainer is gone: what its status says, else the last line of its log, else its signal. */
export function endOfTrainer(folder: RunFolder, signal: NodeJS.Signals | null): string {
  if (signal === 'SIGKILL') return `trainer of ${folder.id}: killed (SIGKILL), most likely for memory: lower the micro-batch sizes or max_model_len`;
  if (signal) return `trainer of ${folder.id}: ended by ${signal}: see ${folder.file(runFiles.log)}`;
  const lines = readFileSync(folder.file(runFiles.log), 'utf8').trimEnd().split('\n');
  const last = lines.filter(line => !line.startsWith('{')).at(-1);
  return last ?? `trainer of ${folder.id}: it ended before it served the run: see ${folder.file(runFiles.log)}`;
}

async function aboutModel(path: string, folder: string): Promise<Manifest['model']> {
  const config = parseDecoderConfig(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')), join(folder, 'config.json'));
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).filter(file => file.endsWith('.safetensors')).sort())
    hash.update(`${name} ${(await digestFile(join(folder, name))).sha256}\n`);
  const parameters = parameterSpecs(config).reduce((sum, { dims }) => sum + elements(dims), 0);
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
