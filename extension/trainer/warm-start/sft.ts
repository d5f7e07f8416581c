// Supervised fine-tuning from a configuration to a model folder: demonstrations by solvers, training, checkpoints, and
// finally the model with merged adapters, which reinforcement learning takes as model_path. Everything is in one
// folder; an interrupted training continues from its newest checkpoint when it is requested again.
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { appendAll } from '../../protocol/lists';
import { UserError } from '../../protocol/user-error';
import { abortable } from '../abortable';
import { loadConfig } from '../config/load-config';
import type { RunConfig } from '../config/schema';
import type { Engine, LoadedModel } from '../engine/engine';
import { RunStopped } from '../engine/run-stopped';
import { startEngine } from '../engine/remote-engine';
import { trajectoryLine } from '../evaluation/trajectory-line';
import { installation } from '../installation';
import { exportModel } from '../models/export-model';
import { modelFiles } from '../models/model-files';
import { readDecoderConfig, readTokenizer } from '../models/model-folder';
import { optimizerStateFiles, readMoments } from '../optimizer-state';
import { logNotice, openEnvironments } from '../run-environments';
import { episodeRecord } from '../rollout/episode-record';
import { sampledTokens } from '../rollout/rollout-batch';
import { sampledMask } from '../rollout/rollout-sample';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { deriveSeed } from '../rollout/seeds';
import { newestCheckpoint, writeCheckpoint } from '../store/checkpoint';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunSeal } from '../store/manifest-seal';
import { digestFile, makeFolder, replaceFile, storeError } from '../store/files';
import { LineLog, readValues } from '../store/line-log';
import { readRegularSync } from '../store/regular-file';
import { demonstrations } from './demonstrations';
import { crossEntropy, fineTune, stepsOf } from './fine-tune';
import type { FineTuneStart, FineTuneStep, Shown } from './fine-tune';
import type { SftConfig } from './sft-config';

export interface SftRequest {
  config: SftConfig;
  hash: string;
  workspace: string;
  presetFolders: readonly string[];
  /** Absolute path of the model to start from. */
  modelFolder: string;
  /** An abort with RunStopped ends the current work at once, with a checkpoint of the last finished step. */
  signal: AbortSignal;
  onStep(step: FineTuneStep, total: number): void;
  /** Receives the current work and its progress. */
  onProgress?(what: string, done: number, of: number): void;
  printLine(line: string): void;
}

export interface SftResult {
  folder: string;
  /** The finished model's folder; null if the training was stopped. */
  model: string | null;
  steps: number;
  total_steps: number;
  demonstrations: { train: number; val: number };
  /** Cross-entropy of the validation demonstrations in nats per token, before the first step and after the last. */
  val_loss: { before: number | null; after: number | null };
}

const names = { about: 'sft.json', metrics: 'metrics.jsonl', model: 'model' } as const;

/** Fine-tunes a model, or continues an earlier training. Throws a UserError or ConfigError. */
export async function sft(request: SftRequest): Promise<SftResult> {
  const { config, hash, workspace, modelFolder } = request;
  const folder = resolve(workspace, config.trainer.default_local_dir, config.trainer.experiment_name);
  const earlier = readAbout(folder);
  if (earlier && earlier.hash !== hash)
    throw new UserError(
      `sft: ${folder} holds a training of another configuration: give another trainer.experiment_name, or remove it`,
    );
  if (earlier?.result) return earlier.result;
  const positions = readDecoderConfig(modelFolder).maxPositions;
  if (config.data.max_length > positions)
    throw new UserError(
      `config: data.max_length is ${config.data.max_length}, but ${config.model.partial_pretrain} has ${positions} positions: lower it`,
    );
  try {
    return await demonstrateAndTrain(request, folder);
  } catch (error) {
    if (!(error instanceof RunStopped)) throw error;
    const { train_size: train, val_size: val } = config.data;
    const steps = (await newestOf(request, folder))?.manifest.step ?? 0;
    const total_steps = stepsOf(train, config);
    return {
      folder,
      model: null,
      steps,
      total_steps,
      demonstrations: { train, val },
      val_loss: { before: null, after: null },
    };
  }
}

/** @throws RunStopped if it is stopped before it trains */
async function demonstrateAndTrain(request: SftRequest, folder: string): Promise<SftResult> {
  const { config, hash } = request;
  const shown = await demonstrate(request);
  await makeFolder(folder);
  await replaceFile(join(folder, names.about), json({ hash, config }));
  for (const [name, episodes] of Object.entries(shown))
    await replaceFile(join(folder, `demonstrations-${name}.jsonl`), episodes.map(demonstrationLine));
  const samples = { train: shown.train.flatMap(samplesOf), val: shown.val.flatMap(samplesOf) };
  const { steps, before, after } = await trainAndExport(request, folder, samples);
  const finished = existsSync(join(folder, names.model));
  const result: SftResult = {
    folder,
    model: finished ? join(folder, names.model) : null,
    steps,
    total_steps: stepsOf(samples.train.length, config),
    demonstrations: { train: shown.train.length, val: shown.val.length },
    val_loss: { before, after },
  };
  if (finished) await replaceFile(join(folder, names.about), json({ hash, config, result }));
  return result;
}

/** Solved episodes for training and validation; those for validation have later seeds. */
async function demonstrate(request: SftRequest): Promise<{ train: RolloutEpisode[]; val: RolloutEpisode[] }> {
  const { config, workspace, presetFolders, modelFolder, signal, printLine, onProgress } = request;
  const { demonstrations: asked, data } = config;
  const loaded = loadConfig({
    configName: asked.config_name,
    overrides: [...asked.overrides],
    presetFolders,
    workspace,
  }).config;
  const run = withLength(loaded, data.max_length);
  const tags = asked.tags ?? run.es_manager.train.env_configs.tags;
  const unknown = tags.find(tag => !Object.hasOwn(run.custom_envs, tag));
  if (unknown !== undefined)
    throw new UserError(
      `config: demonstrations.tags names ${unknown}, which custom_envs of ${asked.config_name} does not have: use one of ${Object.keys(run.custom_envs).join(', ')}`,
    );
  const { environments, loaded: environmentsLoaded } = await openEnvironments(run, tags, workspace, logNotice, signal);
  try {
    const tools = { environments, loaded: environmentsLoaded, tokenizer: readTokenizer(modelFolder) };
    const train: RolloutEpisode[] = [];
    const val: RolloutEpisode[] = [];
    for (const [i, tag] of tags.entries()) {
      const part = (size: number): number => Math.floor(size / tags.length) + Number(i < size % tags.length);
      const own = { train: part(data.train_size), val: part(data.val_size) };
      if (own.train + own.val === 0) continue;
      const episodes = await demonstrations(
        {
          config: run,
          tag,
          count: own.train + own.val,
          seed: asked.seed,
          maxDepth: asked.max_depth,
          signal,
          onProgress: solved => onProgress?.(`demonstrations of ${tag}`, solved, own.train + own.val),
        },
        tools,
      );
      printLine(`${tag}: ${episodes.length} demonstrations, seeds ${episodes[0].seed} to ${episodes.at(-1)!.seed}`);
      appendAll(train, episodes.slice(0, own.train));
      appendAll(val, episodes.slice(own.train));
    }
    return { train, val };
  } finally {
    await environments.stop();
  }
}

const withLength = (config: RunConfig, max_model_len: number): RunConfig => {
  const { actor_rollout_ref: policy } = config;
  return { ...config, actor_rollout_ref: { ...policy, rollout: { ...policy.rollout, max_model_len } } };
};

const samplesOf = ({ samples }: RolloutEpisode): Shown[] =>
  samples.map(sample => ({ ids: sample.ids, mask: sampledMask(sample) }));

function demonstrationLine(episode: RolloutEpisode, index: number): Uint8Array {
  const facts = { metrics: {}, entropy: null, n_tokens: sampledTokens(episode) };
  const line = trajectoryLine(index, episodeRecord(episode), facts, 'workbench');
  return Buffer.from(`${JSON.stringify(line)}\n`);
}

const newestOf = ({ config, hash }: Pick<SftRequest, 'config' | 'hash'>, folder: string) =>
  newestCheckpoint(
    folder,
    { id: config.trainer.experiment_name, manifest: hash },
    name => `remove the damaged one to continue from ${name}`,
  );

/** Trains from the newest checkpoint on; exports the model after the last step. */
async function trainAndExport(
  { config, hash, modelFolder, signal, onStep, onProgress, printLine }: SftRequest,
  folder: string,
  samples: { train: Shown[]; val: Shown[] },
): Promise<{ steps: number; before: number | null; after: number | null }> {
  const { model, trainer, workbench } = config;
  const total = stepsOf(samples.train.length, config);
  const owner: RunSeal = { id: trainer.experiment_name, manifest: hash };
  const checkpoint = await newestOf({ config, hash }, folder);
  const engine = startEngine(installation.engineWorker);
  try {
    const adapted = model.lora_rank > 0;
    signal.addEventListener('abort', () => engine.interrupt(), { once: true });
    const loading = engine.load({
      modelFolder: adapted || !checkpoint ? modelFolder : checkpoint.folder,
      adapterFolder: adapted && checkpoint ? checkpoint.folder : null,
      lora: adapted
        ? {
            rank: model.lora_rank,
            alpha: model.lora_alpha,
            dropout: model.lora_dropout,
            targets: model.target_modules,
          }
        : null,
      referenceFolder: null,
      critic: false,
      device: workbench.device,
      threads: workbench.threads,
      rolloutQuantization: 'none',
      baseQuantization: 'none',
      checkpointed: model.enable_gradient_checkpointing,
      seed: deriveSeed('new-weights', trainer.seed),
      maxPositions: config.data.max_length,
      cacheFolder: installation.cache,
    });
    const loaded = await abortable(signal, loading);
    const metrics = new LineLog(join(folder, names.metrics), { fsync: 'explicit' });
    let done = checkpoint?.manifest.step ?? 0;
    let saved = done;
    try {
      const { unvalidated } = (checkpoint?.manifest.state ?? {}) as Pick<FineTuneStart, 'unvalidated'>;
      const write = async (step: number, unvalidated?: FineTuneStep): Promise<void> => {
        metrics.sync();
        const files = await modelFiles(engine, loaded, modelFolder, model.partial_pretrain);
        const log = { offset: metrics.offset, sum: await sumOf(folder, metrics.offset) };
        await save(folder, { step, unvalidated }, log, { engine, files, owner, keep: trainer.max_ckpt_to_keep });
        saved = step;
      };
      let trained: FineTuneStep | undefined;
      let isCut = false;
      try {
        const follow = (what: string): void => {
          engine.onUnits = (pass, of) => onProgress?.(what, pass, of);
        };
        if (checkpoint) {
          await engine.restore({ actor: await readMoments(checkpoint, 'actor', done) });
          await refuseOtherMetrics(folder, checkpoint);
          metrics.truncateTo(checkpoint.manifest.offsets[names.metrics]);
          printLine(`continuing after step ${done} of ${total}`);
        } else {
          metrics.truncateTo(0);
          follow('validation');
          metrics.append({ step: 0, 'val/loss': await crossEntropy(engine, samples.val, config) });
        }
        follow(unvalidated ? `validation after step ${done}` : `step ${done + 1} of ${total}`);
        await fineTune(
          engine,
          samples,
          config,
          { done, unvalidated },
          {
            onTrained: step => {
              trained = step;
              follow(`validation after step ${step.step}`);
            },
            onStep: async (step, due) => {
              metrics.append(step);
              onStep(step, total);
              trained = undefined;
              done = step.step;
              if (due) await write(done);
              follow(`step ${done + 1} of ${total}`);
              return !signal.aborted;
            },
          },
        );
      } catch (error) {
        if (!(error instanceof RunStopped)) throw error;
        isCut = true; // even if only the last validation is missing
      }
      const isDone = () => done === total && !isCut;
      if (trained) await write((done = trained.step), trained);
      else if (done > saved) await write(done);
      const losses = lossesIn(join(folder, names.metrics));
      if (isDone())
        await exportTo(join(folder, names.model), modelFolder, loaded, (await newestOf({ config, hash }, folder))!);
      return { steps: done, before: losses[0] ?? null, after: isDone() ? losses.at(-1)! : null };
    } finally {
      metrics.close();
    }
  } finally {
    await engine.stop();
  }
}

async function save(
  folder: string,
  { step, unvalidated }: { step: number; unvalidated?: FineTuneStep },
  log: { offset: number; sum: string },
  { engine, files, owner, keep }: { engine: Engine; files: Record<string, Uint8Array>; owner: RunSeal; keep: number },
): Promise<void> {
  const { actor } = await engine.state();
  await writeCheckpoint(
    folder,
    {
      step,
      offsets: { [names.metrics]: log.offset },
      streams: {},
      seed_counter: 0,
      state: unvalidated ? { unvalidated } : null,
      run: owner,
      log_chain: log.sum,
    },
    { ...files, ...optimizerStateFiles('actor', actor) },
    keep,
  );
}

/**
 * sha256 (hex) of the metrics up to `offset`: the file has one line per step, so hashing all of it each time is cheap.
 */
const sumOf = async (folder: string, offset: number): Promise<string> =>
  (
    await digestFile(join(folder, names.metrics), { to: offset }).catch((error: unknown) => {
      throw storeError('read', join(folder, names.metrics), error);
    })
  ).sha256;

/** Throws a UserError if the metrics differ from those that the checkpoint was written with. */
async function refuseOtherMetrics(
  folder: string,
  { manifest: { offsets, log_chain } }: StoredCheckpoint,
): Promise<void> {
  if (log_chain !== undefined && (await sumOf(folder, offsets[names.metrics])) !== log_chain)
    throw new UserError(
      `store: ${join(folder, names.metrics)} differs from what the training wrote: restore it, or remove ${folder} to start over`,
    );
}

/** Exports the finished model: the checkpoint itself, or the base with the checkpoint's adapter merged into it. */
async function exportTo(out: string, base: string, { lora }: LoadedModel, { folder }: StoredCheckpoint): Promise<void> {
  await rm(out, { recursive: true, force: true });
  await exportModel({
    ...(lora ? { model: base, adapter: folder } : { model: folder }),
    out,
    format: 'safetensors',
    maxShardBytes: 5e9,
  });
}

/** Validation losses in order. */
function lossesIn(file: string): number[] {
  const losses: number[] = [];
  for (const { value } of readValues(file, line => line as Partial<FineTuneStep>))
    if (value['val/loss'] !== undefined) losses.push(value['val/loss']);
  return losses;
}

function readAbout(folder: string): { hash: string; result?: SftResult } | null {
  const file = join(folder, names.about);
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readRegularSync(file).toString('utf8')) as { hash: string; result?: SftResult };
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`sft: ${file} is damaged: remove the folder to start over`);
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;
