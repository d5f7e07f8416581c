// `ragen export`: writes a model or a run's checkpoint as a folder that other tools can load, or the episodes of a run as
// a data set (../trajectories). An adapter can be merged into the written model. An interrupted or failed export leaves
// nothing behind.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SingleBar, Presets } from 'cli-progress';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { exportModel } from '../../models/weights/export-model';
import type { ExportRequest, ExportResult } from '../../models/weights/export-model';
import { adapterConfigName } from '../../models/adapters/peft-adapter';
import { checkpointFor } from '../../trainer/run/run-checkpoint';
import { RunFolder } from '../../trainer/store/run-folder';
import { requireNoLinks } from '../../trainer/run/trusted-run';
import type { StoredType } from '../../models/weights/safetensors-writer';
import { answer, type Answer } from '../output/answer';
import { exportToMlflow } from '../trajectories/export-mlflow';
import { episodeFormats, exportEpisodes, type EpisodeFormat } from '../trajectories/export-episodes';
import { downloadBar, megabytes, modelFolder } from '../model-files/fetch-model';
import type { Parse } from '../options/model-options';
import { workspaceOf } from '../options/workspace';

interface ExportFlags {
  model?: string;
  adapter?: string;
  run?: string;
  checkpoint?: string;
  workspace?: string;
  out?: string;
  mlflow?: string;
  experiment?: string;
  format: ExportRequest['format'] | EpisodeFormat;
  dtype?: StoredType;
  maxShardSize: number;
  episodes?: string;
  force?: boolean;
  json?: boolean;
}

const storedTypes: Readonly<Record<string, StoredType>> = { f32: 'F32', bf16: 'BF16', f16: 'F16' };

const storedType: Parse<StoredType> = text => {
  if (Object.hasOwn(storedTypes, text)) return storedTypes[text];
  throw new UserError(`--dtype is ${JSON.stringify(text)}: use one of ${Object.keys(storedTypes).join(', ')}`);
};

const modelFormats = ['safetensors', 'onnx'] as const;
const isEpisodeFormat = (text: string): text is EpisodeFormat => episodeFormats.some(each => each === text);

const format: Parse<ExportFlags['format']> = text => {
  const found = [...modelFormats, ...episodeFormats].find(each => each === text);
  if (found) return found;
  throw new UserError(
    `--format is ${JSON.stringify(text)}: use one of ${[...modelFormats, ...episodeFormats].join(', ')}`,
  );
};

const units: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KIB: 2 ** 10,
  MIB: 2 ** 20,
  GIB: 2 ** 30,
};

const byteCount: Parse<number> = text => {
  const [, digits, unit] = /^(\d+(?:\.\d+)?) ?([KMG]?i?B)$/i.exec(text) ?? [];
  const bytes = digits ? Math.floor(Number(digits) * units[unit.toUpperCase()]) : 0;
  if (bytes > 0) return bytes;
  throw new UserError(`--max-shard-size is ${JSON.stringify(text)}: give a size such as 5GB or 500MB`);
};

export function addExport(program: Command): void {
  program
    .command('export')
    .description('write a model, or the episodes of a run, for other tools')
    .option(
      '--model <model>',
      'folder in Hugging Face format, hub model (organisation/name), or the name of a bundled model',
    )
    .option('--adapter <folder>', 'LoRA adapter in PEFT format, merged into the model')
    .option('--run <id>', 'export a checkpoint of this run, instead of --model')
    .option('--checkpoint <name>', 'checkpoint of the run, such as step-000100 (default: the newest)')
    .option('--out <path>', 'output folder, which must not exist or must be empty; for episodes, a file')
    .option(
      '--format <name>',
      'of a model: safetensors or onnx, which also writes a model.onnx; of the episodes of --run: messages, sft, dpo, atif or parquet',
      format,
      'safetensors',
    )
    .option('--episodes <filter>', 'filter of the episodes, as for ragen episodes (default: all)')
    .option('--force', 'replace an existing file of episodes')
    .option('--mlflow <url>', 'send parameters, metrics and artefacts of --run to this MLflow tracking server')
    .option('--experiment <name>', 'experiment of --mlflow (default: trainer.project_name)')
    .option('--dtype <type>', 'f32, bf16 or f16 (default: the model’s type; f32 for onnx)', storedType)
    .option('--max-shard-size <size>', 'maximum size of one weights file', byteCount, byteCount('5GB'))
    .option('--workspace <folder>', 'folder whose .ragen/runs contains the runs (default: the current folder)')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .addHelpText(
      'after',
      `
Episodes: messages writes JSON lines {"messages", "metadata"} in OpenAI's format, sft only {"messages"}, dpo a line {"prompt",
"chosen", "rejected"} per prompt group (highest against lowest score), atif a folder with one ATIF trajectory per episode, and
parquet one table. Output with --json: {"file", "rows", "note"}, for atif {"folder", "rows"}.
Models: output with --json: {"folder", "dtype", "parameters", "files": [name, …], "merged_layers"}. The folder contains
config.json, generation_config.json, the tokenizer and the chat template. It contains the weights as model.safetensors or, if
they exceed --max-shard-size, as several files with an index. --format onnx adds model.onnx, which computes logits [b, t, vocab]
(float32) from input_ids, attention_mask and position_ids [b, t] (int64). This model uses only standard ONNX operators (opset 21) and
no cache, and reads its weights from the safetensors files in the same folder.`,
    )
    .action((flags: ExportFlags) => answer(flags, () => runExport(flags)));
}

async function runExport(flags: ExportFlags): Promise<Answer> {
  const { format: kind, out, mlflow, run, experiment } = flags;
  if (mlflow !== undefined) {
    if (run === undefined) throw new UserError('export: --mlflow sends a run: give its id with --run');
    if (out !== undefined) throw new UserError('export: --mlflow writes no files: leave out --out');
    return exportToMlflow({ workspace: workspaceOf(flags.workspace), run, uri: mlflow, experiment });
  }
  if (out === undefined) throw new UserError('export: no target is given: give --out, or --mlflow with --run');
  if (isEpisodeFormat(kind)) return exportRunEpisodes(flags, kind, out);
  if (flags.episodes !== undefined)
    throw new UserError(`export: --episodes needs a format of episodes: give --format ${episodeFormats.join(', ')}`);
  const source = await sourceOf(flags);
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  process.once('SIGINT', abort).once('SIGTERM', abort);
  const bar = process.stderr.isTTY
    ? new SingleBar(
        { ...downloadBar, hideCursor: true, clearOnComplete: true, stream: process.stderr, barsize: 24 },
        Presets.shades_classic,
      )
    : null;
  bar?.start(1, 0, { file: out, size: '' });
  try {
    const exported = await exportModel({
      ...source,
      out,
      format: kind,
      dtype: flags.dtype,
      maxShardBytes: flags.maxShardSize,
      signal: stop.signal,
      onProgress: (bytes, total) => {
        bar?.setTotal(total);
        bar?.update(bytes, { file: out, size: megabytes(total) });
      },
    });
    return { document: documentOf(exported), plainText: formatExported(exported) };
  } finally {
    bar?.stop();
    process.off('SIGINT', abort).off('SIGTERM', abort);
  }
}

function exportRunEpisodes(flags: ExportFlags, kind: EpisodeFormat, out: string): Promise<Answer> {
  const { run, model, adapter, checkpoint, dtype, episodes = '', force = false, workspace } = flags;
  if (run === undefined) throw new UserError(`export: --format ${kind} writes episodes: give their run with --run`);
  const idle = Object.entries({ model, adapter, checkpoint, dtype }).find(([, value]) => value !== undefined);
  if (idle) throw new UserError(`export: --format ${kind} writes episodes: leave out --${idle[0]}`);
  return exportEpisodes({ workspace: workspaceOf(workspace), run, format: kind, out, filter: episodes, force });
}

/**
 * Returns the folders of model and adapter. If a checkpoint contains only an adapter, the model is the run's base
 * model.
 */
async function sourceOf(flags: ExportFlags): Promise<{ model: string; adapter?: string }> {
  const workspace = workspaceOf(flags.workspace);
  if (flags.run === undefined) {
    if (flags.checkpoint !== undefined)
      throw new UserError(`export: --checkpoint ${flags.checkpoint} needs a run: give the id of the run with --run`);
    if (flags.model === undefined) throw new UserError('export: no model is given: give --model or --run');
    if (existsSync(join(flags.model, adapterConfigName)) && !existsSync(join(flags.model, 'config.json')))
      throw new UserError(
        `--model is the adapter ${flags.model}: give the adapter with --adapter, and its base model with --model`,
      );
    return { model: await modelFolder(flags.model, process.cwd(), '--model'), adapter: flags.adapter };
  }
  if (flags.model !== undefined || flags.adapter !== undefined)
    throw new UserError(
      `export: --run ${flags.run} already selects the model and the adapter: leave out --model and --adapter`,
    );
  const run = RunFolder.find(workspace, flags.run);
  requireNoLinks(run);
  const checkpoint = await checkpointFor(run, flags.checkpoint, `ragen export --run ${run.id}`);
  if (!checkpoint) throw new UserError(`export: run ${flags.run} has no checkpoint: train it further`);
  const { folder } = checkpoint;
  if (!existsSync(join(folder, adapterConfigName))) return { model: folder };
  const { config, model } = run.manifest;
  const path = String(config.model_path);
  const base = model.revision === undefined ? path : `${path.split('@')[0]}@${model.revision}`;
  return { model: await modelFolder(base, workspace), adapter: folder };
}

const documentOf = ({ folder, dtype, parameters, files, mergedLayers }: ExportResult) => ({
  folder,
  dtype: Object.keys(storedTypes).find(name => storedTypes[name] === dtype),
  parameters,
  files,
  merged_layers: mergedLayers,
});

function formatExported({ folder, dtype, parameters, mergedLayers }: ExportResult): string {
  const merged = mergedLayers > 0 ? `, an adapter merged into ${mergedLayers} layers` : '';
  return `${parameters.toLocaleString('en-US')} parameters in ${dtype}${merged} → ${folder}`;
}
