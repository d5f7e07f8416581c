// `ragen eval`: plays the validation episodes of a configuration once, with a run's checkpoint, any model, or a model
// behind an API. An evaluation is an ordinary run: it outlives the terminal, the editor shows its episodes, and `ragen
// resume` can resume it.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { adapterConfigName } from '../../models/adapters/peft-adapter';
import { checkpointFor } from '../../trainer/run/run-checkpoint';
import type { StoredCheckpoint } from '../../trainer/store/checkpoint';
import { RunFolder } from '../../trainer/store/run-folder';
import { requireTrusted } from '../../trainer/run/trusted-run';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { start } from '../run-lifecycle/run-and-follow';
import { withConfig, withTrust } from '../options/run-options';
import type { StartFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface EvalFlags extends StartFlags {
  run?: string;
  checkpoint?: string;
  model?: string;
}

export function addEval(program: Command): void {
  withTrust(withConfig(program.command('eval').description('play the validation episodes once, without training')))
    .option('--run <id>', 'evaluate a checkpoint of this run, by default with the configuration of the run')
    .option('--checkpoint <name>', 'checkpoint of the run, such as step-000100 (default: the newest)')
    .option('--model <model>', 'model to evaluate, instead of the configuration’s model_path')
    .addHelpText(
      'after',
      `
Writes the trajectories as JSON lines, and a summary with success, pass@k and 95 % intervals. The output folder is output.dir,
by default results/<run>. Prints the same as ragen train; the JSON document also contains the summary, under the key "evaluation".
ragen resume <run> continues an interrupted evaluation. To evaluate a model behind an API, use --config-name evaluate_api_llm
and set the environment variable of its API key (docs/EVALUATION.md).`,
    )
    .action((overrides: string[], flags: EvalFlags) => answer(flags, () => evaluate(overrides, flags)));
}

async function evaluate(overrides: string[], flags: EvalFlags): Promise<Answer> {
  const only = 'trainer.val_only=true';
  if (flags.run === undefined) {
    if (flags.checkpoint !== undefined)
      throw new UserError(`eval: --checkpoint ${flags.checkpoint} needs a run: give the id of the run with --run`);
    const model = flags.model === undefined ? [] : [`model_path=${flags.model}`];
    return start([...model, ...overrides, only], flags);
  }
  if (flags.model !== undefined)
    throw new UserError(`eval: --run ${flags.run} already selects the model: leave out --model ${flags.model}`);
  const trained = RunFolder.find(workspaceOf(flags.workspace), flags.run);
  const named = flags.configName !== undefined || flags.config !== undefined;
  if (!named) requireTrusted(trained, flags);
  const checkpoint = await checkpointOf(trained, flags);
  const own = [
    ...modelOf(trained, checkpoint.folder),
    `trainer.experiment_name=${JSON.stringify(nameOf(trained, checkpoint.manifest.step))}`,
  ];
  return start([...own, ...overrides, only], flags, named ? {} : { from: trained.manifest });
}

/**
 * Returns a name for the evaluation. It contains the run's name, digits of the run's id, and the step; the digits
 * distinguish runs of the same name.
 */
const nameOf = ({ id, manifest: { name } }: RunFolder, step: number): string =>
  `eval of ${name} ${id.slice(id.lastIndexOf('-') + 1)} step ${step}`;

async function checkpointOf(trained: RunFolder, { run, checkpoint: name }: EvalFlags): Promise<StoredCheckpoint> {
  const checkpoint = await checkpointFor(trained, name, `ragen eval --run ${trained.id}`);
  if (checkpoint) return checkpoint;
  throw new UserError(`eval: run ${run} has no checkpoint: train it further or give --config-name and model_path`);
}

/**
 * Returns overrides that select the checkpoint in `folder`: the checkpoint's model, or its adapter and the run's base
 * model.
 */
function modelOf(trained: RunFolder, folder: string): string[] {
  if (!existsSync(join(folder, adapterConfigName))) return [`model_path=${folder}`];
  const { config, model } = trained.manifest;
  const path = String(config.model_path);
  const base = model.revision === undefined ? path : `${path.split('@')[0]}@${model.revision}`;
  return [`model_path=${base}`, `actor_rollout_ref.model.lora_adapter_path=${folder}`];
}
