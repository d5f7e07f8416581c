// Trains on demonstrations, continuing from the newest checkpoint, and exports the model after the last step. A
// checkpoint stores a hash of the metrics up to its step. If the metrics file has been changed since then, training
// cannot be resumed.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { abortable } from '../../node/abortable';
import type { Engine, LocalState } from '../../engine/engine';
import type { LoadedModel, PictureOptions } from '../../engine/load-options';
import { RunStopped } from '../../engine/run-stopped';
import { startEngine } from '../../engine/remote-engine';
import { installation } from '../../node/installation';
import { exportModel } from '../../models/weights/export-model';
import { modelFiles } from '../../models/weights/model-files';
import { optimizerStateFiles, readMoments } from '../store/optimizer-state';
import { deriveSeed } from '../rollout/seeds';
import { newestCheckpoint } from '../store/newest-checkpoint';
import { writeCheckpoint } from '../store/checkpoint-writer';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunSeal } from '../store/manifest-seal';
import { digestFile, storeError } from '../../node/files';
import { LineLog, readValues } from '../store/line-log';
import { crossEntropy, fineTune, stepsOf } from './fine-tune';
import type { FineTuneStart, FineTuneStep, SftSample } from './fine-tune';
import type { SftRequest } from './sft-request';
import { sftFiles } from './sft-request';

export const newestOf = ({ config, hash }: Pick<SftRequest, 'config' | 'hash'>, folder: string) =>
  newestCheckpoint(
    folder,
    { id: config.trainer.experiment_name, manifest: hash },
    name => `remove the damaged checkpoint to continue from ${name}`,
  );

/**
 * Trains to the last step, continuing from the newest checkpoint, then exports the model. Returns the number of
 * finished steps and the validation losses.
 */
export async function trainAndExport(
  { config, hash, modelFolder, signal, onStep, onProgress, printLine }: SftRequest,
  folder: string,
  samples: { train: SftSample[]; val: SftSample[]; pictures: PictureOptions },
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
      generates: false,
      pictures: samples.pictures,
    });
    const loaded = await abortable(signal, loading);
    const metrics = new LineLog(join(folder, sftFiles.metrics), { fsync: 'explicit' });
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
          metrics.truncateTo(checkpoint.manifest.offsets[sftFiles.metrics]);
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
        isCut = true; // the stop may have interrupted only the last validation
      }
      const isDone = () => done === total && !isCut;
      if (trained) await write((done = trained.step), trained);
      else if (done > saved) await write(done);
      const losses = lossesIn(join(folder, sftFiles.metrics));
      if (isDone())
        await exportTo(join(folder, sftFiles.model), modelFolder, loaded, (await newestOf({ config, hash }, folder))!);
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
  {
    engine,
    files,
    owner,
    keep,
  }: { engine: Engine<LocalState>; files: Record<string, Uint8Array>; owner: RunSeal; keep: number },
): Promise<void> {
  const { actor } = await engine.state();
  await writeCheckpoint(
    folder,
    {
      step,
      offsets: { [sftFiles.metrics]: log.offset },
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
 * Returns the sha256 (hex) of the metrics up to byte `offset`. Hashing the metrics for each checkpoint takes little
 * time, because the metrics have only one line per step.
 */
const sumOf = async (folder: string, offset: number): Promise<string> =>
  (
    await digestFile(join(folder, sftFiles.metrics), { to: offset }).catch((error: unknown) => {
      throw storeError('read', join(folder, sftFiles.metrics), error);
    })
  ).sha256;

/** Throws a UserError if the metrics differ from those at the time of the checkpoint. */
async function refuseOtherMetrics(
  folder: string,
  { manifest: { offsets, log_chain } }: StoredCheckpoint,
): Promise<void> {
  if (log_chain !== undefined && (await sumOf(folder, offsets[sftFiles.metrics])) !== log_chain)
    throw new UserError(
      `store: ${join(folder, sftFiles.metrics)} differs from what the training wrote: restore it, or remove ${folder} to start over`,
    );
}

/**
 * Exports the finished model. Without adapters, the finished model is the checkpoint. With adapters, the finished model
 * is the base model after the checkpoint's adapter has been merged into it.
 */
async function exportTo(out: string, base: string, { lora }: LoadedModel, { folder }: StoredCheckpoint): Promise<void> {
  await rm(out, { recursive: true, force: true });
  await exportModel({
    ...(lora ? { model: base, adapter: folder } : { model: folder }),
    out,
    format: 'safetensors',
    maxShardBytes: 5e9,
  });
}

/** Returns the validation losses of a metrics file, in order. */
function lossesIn(file: string): number[] {
  const losses: number[] = [];
  for (const { value } of readValues(file, line => line as Partial<FineTuneStep>))
    if (value['val/loss'] !== undefined) losses.push(value['val/loss']);
  return losses;
}
