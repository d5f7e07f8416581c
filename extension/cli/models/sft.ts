// `ragen sft`: trains a model on solvers' demonstrations (supervised fine-tuning), as a starting point for
// reinforcement learning. Ctrl-C saves a checkpoint of the last step and ends the command; the same command continues
// from the checkpoint.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { loadSftConfig } from '../../trainer/sft/sft-config';
import { sft } from '../../trainer/sft/supervised-fine-tuning';
import type { SftResult } from '../../trainer/sft/sft-request';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { RunStopped } from '../../engine/run-stopped';
import { ProgressLine } from '../output/progress-line';
import { modelFolder } from '../model-files/fetch-model';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { presetFolders, workspaceOf } from '../options/workspace';

interface SftFlags extends CommonFlags {
  configName: string;
  config?: string;
  name?: string;
}

export function addSft(program: Command): void {
  withCommon(program.command('sft').description('fine-tune a model on demonstrations of solvers'))
    .argument('[overrides...]', 'key=value, such as model.partial_pretrain=ragen-tiny')
    .option('--config-name <name>', 'name of a configuration', 'sft')
    .option('--config <file>', 'configuration file')
    .option(
      '--name <name>',
      'name of the output folder in trainer.default_local_dir (default: the value of demonstrations.config_name)',
    )
    .addHelpText(
      'after',
      `
Creates demonstrations with the environments' solvers. Trains a model on them, with validation and checkpoints. Merges adapters and
writes a model folder for the model_path of ragen train. The configuration has the keys of verl's fine-tuning (docs/EVALUATION.md).
Output with --json: {"folder", "model", "steps", "total_steps", "demonstrations": {"train", "val"}, "val_loss": {"before", "after"}}.`,
    )
    .action((overrides: string[], flags: SftFlags) => answer(flags, () => run(overrides, flags)));
}

async function run(overrides: string[], flags: SftFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folders = presetFolders(workspace);
  const { config, hash, notes } = loadSftConfig({
    configName: flags.configName,
    configFile: flags.config === undefined ? undefined : resolve(workspace, flags.config),
    overrides:
      flags.name === undefined ? overrides : [...overrides, `trainer.experiment_name=${JSON.stringify(flags.name)}`],
    presetFolders: folders,
  });
  const bar = new ProgressLine();
  const printLine = (line: string): void => bar.print(line);
  for (const note of notes) printLine(`note: ${note}`);
  const stop = new AbortController();
  const abort = (): void => stop.abort(new RunStopped());
  process.once('SIGINT', abort).once('SIGTERM', abort);
  try {
    const result = await sft({
      config,
      hash,
      workspace,
      presetFolders: folders,
      modelFolder: await modelFolder(config.model.partial_pretrain, workspace, 'config: model.partial_pretrain'),
      signal: stop.signal,
      printLine,
      onProgress: (what, done, of) => bar.show(what, done, of),
      onStep: ({ step, 'train/loss': loss, 'val/loss': val }, total) =>
        printLine(
          `step ${step}/${total}  loss ${loss.toFixed(4)}${val === undefined ? '' : `  validation ${val.toFixed(4)}`}`,
        ),
    });
    return { document: result, plainText: formatResult(result) };
  } finally {
    process.off('SIGINT', abort).off('SIGTERM', abort);
    bar.close();
  }
}

function formatResult({
  folder,
  model,
  steps,
  total_steps,
  demonstrations: { train, val },
  val_loss,
}: SftResult): string {
  if (model === null || val_loss.before === null || val_loss.after === null)
    return `Stopped after ${steps} of ${total_steps} steps: run the same command to continue. Folder: ${folder}`;
  return [
    `Trained on ${train} demonstrations in ${steps} steps; cross-entropy on ${val} other demonstrations ${val_loss.before.toFixed(4)} → ${val_loss.after.toFixed(4)}`,
    `Model: ${model}`,
    `Next: ragen train --config-name <name> model_path=${model}`,
  ].join('\n');
}
