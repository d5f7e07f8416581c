#!/usr/bin/env node
// The terminal: `ragen train|resume|eval|runs|presets|score|generate|export|doctor|config|sweep|algo`. Every command takes --json: then standard output
// is one JSON document, and everything for people goes to standard error. A user's mistake is one sentence and exit code 1.
import { Command, CommanderError } from 'commander';
import type { Manifest, RunState } from '../protocol/run-folder';
import { UserError } from '../protocol/user-error';
import { presets } from './config/load-config';
import { addAlgo } from './terminal/algo';
import { answer } from './terminal/answer';
import type { Answer } from './terminal/answer';
import { addConfig } from './terminal/config';
import { addDoctor } from './terminal/doctor';
import { addExport } from './terminal/export';
import { addGenerate } from './terminal/generate';
import { addScore } from './terminal/score';
import { follow, metricLines } from './terminal/follow';
import { endWithoutWord, makeRun, presetFolders, startTrainer, workspaceOf } from './terminal/start';
import { StepTable } from './terminal/step-table';
import { addSweep } from './terminal/sweep';
import { closingWords, summarize } from './terminal/summary';
import { checkpointNamed, newestValid, openCheckpoint } from './store/checkpoint';
import { readLease } from './store/lease';
import { RunFolder } from './store/run-folder';

interface Common {
  json?: boolean;
  workspace?: string;
}

interface StartFlags extends Common {
  configName?: string;
  config?: string;
  detach?: boolean;
}

/** States that a run without a trainer cannot be in: its trainer was lost. */
const unended: readonly RunState[] = ['starting', 'running', 'paused', 'stopping'];

const program = new Command('ragen')
  .description('Trains LLM agents that reason, by reinforcement learning over whole episodes.')
  .exitOverride();

const withCommon = (command: Command): Command =>
  command
    .option('--workspace <folder>', 'folder whose .ragen/runs holds the runs (default: here)')
    .option('--json', 'print one JSON document on standard output, logs on standard error');

const withConfig = (command: Command): Command =>
  withCommon(command)
    .argument('[overrides...]', 'key=value, such as trainer.total_training_steps=20')
    .option('--config-name <name>', 'configuration by name (see ragen presets)')
    .option('--config <file>', 'configuration file')
    .option('--detach', 'return as soon as the trainer serves the run');

withConfig(program.command('train').description('train a policy')).action((overrides: string[], flags: StartFlags) =>
  answer(flags, () => start(overrides, flags)),
);

withConfig(program.command('eval').description('play the validation episodes once, without training'))
  .option('--run <id>', 'evaluate a checkpoint of this run, with its configuration')
  .option('--checkpoint <name>', 'which checkpoint of the run, such as step-000100 (default: the newest)')
  .action((overrides: string[], flags: StartFlags & { run?: string; checkpoint?: string }) =>
    answer(flags, () => evaluate(overrides, flags)),
  );

withCommon(program.command('resume').description('go on with a run from a checkpoint'))
  .argument('<run>', 'id of the run')
  .option('--checkpoint <name>', 'such as step-000100 (default: the newest that is whole)')
  .option('--detach', 'return as soon as the trainer serves the run')
  .action((id: string, flags: Common & { checkpoint?: string; detach?: boolean }) =>
    answer(flags, async () => {
      const workspace = workspaceOf(flags.workspace);
      const folder = RunFolder.find(workspace, id);
      const args = flags.checkpoint === undefined ? ['--resume'] : ['--checkpoint', flags.checkpoint];
      return serveAndFollow(folder, workspace, args, flags);
    }),
  );

withCommon(program.command('runs').description('list the runs of this folder')).action((flags: Common) =>
  answer(flags, async () => {
    const rows = RunFolder.list(workspaceOf(flags.workspace)).map(folder => {
      const status = folder.readStatus();
      const live = readLease(folder.path)?.live ?? false;
      const interrupted = !live && status !== null && unended.includes(status.state);
      return {
        run: folder.id,
        name: folder.manifest.name,
        state: interrupted ? 'interrupted' : (status?.state ?? 'new'),
        step: status?.step ?? 0,
        total_steps: status?.total_steps ?? null,
        success: status?.success ?? null,
        live,
        folder: folder.path,
        ...(status?.error !== undefined && { error: status.error }),
      };
    });
    const lines = rows.map(
      ({ run, state, step, total_steps, success }) =>
        `${run}  ${state.padEnd(11)} ${String(step).padStart(6)}/${total_steps ?? '?'}  ${success === null ? '' : `${(success * 100).toFixed(1)} %`}`,
    );
    return { document: rows, words: lines.join('\n') || 'No runs here yet: ragen train --config-name quickstart' };
  }),
);

withCommon(program.command('presets').description('list the configurations that a run can start from')).action(
  (flags: Common) =>
    answer(flags, async () => {
      const found = presets(presetFolders(workspaceOf(flags.workspace)));
      return {
        document: found,
        words: found.map(({ name, description }) => `${name.padEnd(18)} ${description}`).join('\n'),
      };
    }),
);

addScore(program);
addGenerate(program);
addExport(program);
addDoctor(program);
addConfig(program);
addSweep(program);
addAlgo(program);

async function start(overrides: string[], flags: StartFlags, from?: Manifest): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const { folder, notes } = await makeRun({
    configName: flags.configName,
    configFile: flags.config,
    from,
    overrides,
    workspace,
  });
  for (const note of notes) process.stderr.write(`note: ${note}\n`);
  return serveAndFollow(folder, workspace, [], flags);
}

async function evaluate(
  overrides: string[],
  flags: StartFlags & { run?: string; checkpoint?: string },
): Promise<Answer> {
  if (flags.run === undefined) return start([...overrides, 'trainer.val_only=true'], flags);
  const workspace = workspaceOf(flags.workspace);
  const trained = RunFolder.find(workspace, flags.run);
  const checkpoint =
    flags.checkpoint === undefined
      ? (await newestValid(trained.path)).checkpoint
      : await openCheckpoint(trained.file(checkpointNamed(flags.checkpoint)));
  if (!checkpoint)
    throw new UserError(
      `eval: run ${flags.run} has no checkpoint: train it further or give --config-name and model_path`,
    );
  const own = [`model_path=${checkpoint.folder}`, `trainer.experiment_name=eval-${trained.manifest.name}`];
  return start([...own, ...overrides, 'trainer.val_only=true'], flags, trained.manifest);
}

async function serveAndFollow(
  folder: RunFolder,
  workspace: string,
  args: string[],
  flags: { json?: boolean; detach?: boolean },
): Promise<Answer> {
  const trainer = await startTrainer(folder, workspace, args);
  if (flags.detach)
    return { document: { run: folder.id, folder: folder.path }, words: `Run ${folder.id} is training: ${folder.path}` };
  process.stderr.write(`Run ${folder.id} → ${folder.path}\n`);
  const status = await follow(folder, new StepTable());
  const summary = summarize(folder, metricLines(folder), status);
  const gone = status === null || unended.includes(status.state);
  const failed = gone ? await endWithoutWord(folder, trainer) : status?.error;
  return {
    document: { ...summary, ...(failed !== undefined && { error: { message: failed } }) },
    words: closingWords(summary, workspace),
    failed,
  };
}

program.parseAsync().catch((error: Error) => {
  if (!(error instanceof CommanderError))
    return answer({ json: process.argv.includes('--json') }, () => Promise.reject(error)); // a value of an option
  process.exitCode = error.exitCode; // commander has said what is wrong with the line
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    process.stdout.write(`${JSON.stringify({ error: { message: error.message } })}\n`);
});
