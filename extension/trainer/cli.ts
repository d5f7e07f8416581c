#!/usr/bin/env node
// The terminal: `ragen train|resume|eval|sft|runs|presets|score|generate|export|doctor|algo|config|sweep`. Every command takes --json: then standard output
// is one JSON document, and everything for people goes to standard error. A user's mistake is one sentence and exit code 1.
import { Command, CommanderError } from 'commander';
import { presets } from './config/load-config';
import { addAlgo } from './terminal/algo';
import { answer } from './terminal/answer';
import { addConfig } from './terminal/config';
import { addDoctor } from './terminal/doctor';
import { addEval } from './terminal/eval';
import { addExport } from './terminal/export';
import { addGenerate } from './terminal/generate';
import { addScore } from './terminal/score';
import { serveAndFollow, start, unended, withCommon, withConfig } from './terminal/serve';
import type { CommonFlags, StartFlags } from './terminal/serve';
import { addSft } from './terminal/sft';
import { presetFolders, workspaceOf } from './terminal/start';
import { addSweep } from './terminal/sweep';
import { readLease } from './store/lease';
import { RunFolder } from './store/run-folder';

const program = new Command('ragen')
  .description('Trains LLM agents that reason, by reinforcement learning over whole episodes.')
  .exitOverride();

withConfig(program.command('train').description('train a policy')).action((overrides: string[], flags: StartFlags) =>
  answer(flags, () => start(overrides, flags)),
);

addEval(program);
addSft(program);

withCommon(program.command('resume').description('go on with a run from a checkpoint'))
  .argument('<run>', 'id of the run')
  .option('--checkpoint <name>', 'such as step-000100 (default: the newest that is whole)')
  .option('--detach', 'return as soon as the trainer serves the run')
  .action((id: string, flags: CommonFlags & { checkpoint?: string; detach?: boolean }) =>
    answer(flags, async () => {
      const workspace = workspaceOf(flags.workspace);
      const folder = RunFolder.find(workspace, id);
      const args = flags.checkpoint === undefined ? ['--resume'] : ['--checkpoint', flags.checkpoint];
      return serveAndFollow(folder, workspace, args, flags);
    }),
  );

withCommon(program.command('runs').description('list the runs of this folder')).action((flags: CommonFlags) =>
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
  (flags: CommonFlags) =>
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
addAlgo(program);
addConfig(program);
addSweep(program);

program.parseAsync().catch((error: Error) => {
  if (!(error instanceof CommanderError))
    return answer({ json: process.argv.includes('--json') }, () => Promise.reject(error)); // a value of an option
  process.exitCode = error.exitCode; // commander has said what is wrong with the line
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    process.stdout.write(`${JSON.stringify({ error: { message: error.message } })}\n`);
});
