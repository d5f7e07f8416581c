// Supervised fine-tuning from a configuration to a model folder: creates demonstrations with the environments' solvers
// (demonstration-set.ts), trains on them, and exports the model (sft-training.ts). A run can use the exported folder as
// its model_path. All files are in one folder. An interrupted training continues from its newest checkpoint when the
// same training is requested again.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { makeFolder, replaceFile } from '../../node/files';
import { readRegularSync } from '../../node/regular-file';
import { stepsOf } from './fine-tune';
import type { SftRequest, SftResult } from './sft-request';
import { newestOf, trainAndExport } from './sft-training';
import { demonstrationSet, demonstrationLines, samplesOf } from './demonstration-set';
import { sftFiles } from './sft-request';

/** Fine-tunes a model, or continues an interrupted training. Throws a UserError or ConfigError. */
export async function sft(request: SftRequest): Promise<SftResult> {
  const { config, hash, workspace, modelFolder } = request;
  const folder = resolve(workspace, config.trainer.default_local_dir, config.trainer.experiment_name);
  const earlier = readAbout(folder);
  if (earlier && earlier.hash !== hash)
    throw new UserError(
      `sft: ${folder} contains the training results of another configuration: set another trainer.experiment_name, or remove the folder`,
    );
  if (earlier?.result) return earlier.result;
  const positions = readDecoderConfig(modelFolder).maxPositions;
  if (config.data.max_length > positions)
    throw new UserError(
      `config: data.max_length is ${config.data.max_length}, but ${config.model.partial_pretrain} supports only ${positions} positions: use at most ${positions}`,
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

/** Creates the demonstrations and trains on them. @throws RunStopped if a stop arrives before training begins */
async function demonstrateAndTrain(request: SftRequest, folder: string): Promise<SftResult> {
  const { config, hash } = request;
  const { pictures, ...shown } = await demonstrationSet(request, folder);
  await makeFolder(folder);
  await replaceFile(join(folder, sftFiles.about), json({ hash, config }));
  for (const [name, episodes] of Object.entries(shown))
    await replaceFile(join(folder, `demonstrations-${name}.jsonl`), demonstrationLines(episodes));
  const samples = { train: shown.train.flatMap(samplesOf), val: shown.val.flatMap(samplesOf) };
  const { steps, before, after } = await trainAndExport(request, folder, { ...samples, pictures });
  const finished = existsSync(join(folder, sftFiles.model));
  const result: SftResult = {
    folder,
    model: finished ? join(folder, sftFiles.model) : null,
    steps,
    total_steps: stepsOf(samples.train.length, config),
    demonstrations: { train: shown.train.length, val: shown.val.length },
    val_loss: { before, after },
  };
  if (finished) await replaceFile(join(folder, sftFiles.about), json({ hash, config, result }));
  return result;
}

function readAbout(folder: string): { hash: string; result?: SftResult } | null {
  const file = join(folder, sftFiles.about);
  if (!existsSync(file)) return null;
  try {
    return JSON.parse(readRegularSync(file).toString('utf8')) as { hash: string; result?: SftResult };
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`sft: ${file} is damaged: remove the folder to start over`);
  }
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;
