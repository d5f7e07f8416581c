#!/usr/bin/env node
// The CLI: `ragen
// train|resume|eval|sft|runs|set|presets|inspect|score|generate|export|plan|doctor|algo|config|sweep|env`. Every
// command takes --json: standard output is then one JSON document, and everything meant for people goes to standard
// error. A user error is one sentence and exit code 1.
import { Command, CommanderError } from 'commander';
import { UserError } from '../common/user-error';
import { presets } from '../trainer/config/load-config';
import { addAlgo } from './algo/algo';
import { answer } from './answer';
import { endWithReader } from './closed-output';
import { addConfig } from './machine/config';
import { addDoctor } from './machine/doctor';
import { addEnv } from './environments/env';
import { addEnvNew } from './environments/env-new';
import { addEnvObservations } from './environments/env-observations';
import { addEnvServe } from './environments/env-serve';
import { addEnvVersions } from './environments/env-versions';
import { addEpisodes } from './runs/episodes';
import { addEval } from './runs/eval';
import { addExport } from './models/export';
import { addGenerate } from './models/generate';
import { addHalts } from './runs/halt';
import { addInspect } from './runs/inspect';
import { addPlan } from './machine/plan';
import { addRuns } from './runs/runs';
import { addScore } from './models/score';
import { resume, start, withCommon, withConfig, withTrust } from './runs/serve';
import type { CommonFlags, ResumeFlags, StartFlags } from './runs/serve';
import { addSet } from './runs/set';
import { addSft } from './runs/sft';
import { presetFolders, workspaceOf } from './runs/start';
import { addSweep } from './sweep/sweep';
import { clearPrinted } from '../node/secrets';
import { RunFolder } from '../trainer/store/run-folder';
import { requireTrusted } from '../trainer/run/trusted-run';

clearPrinted(process.stdout, process.stderr);
endWithReader(process.stdout, process.stderr);

const program = new Command('ragen')
  .description('Trains LLM agents that reason, by reinforcement learning over whole episodes.')
  .exitOverride();

withTrust(withConfig(program.command('train').description('train a policy')))
  .option('--from <run>', 'use the configuration of this run, with these overrides instead of its own')
  .action((overrides: string[], flags: StartFlags & { from?: string }) =>
    answer(flags, async () => {
      if (flags.from === undefined) return start(overrides, flags);
      if (flags.configName ?? flags.config)
        throw new UserError(`--from ${flags.from} names a configuration already: leave out --config-name and --config`);
      const earlier = RunFolder.find(workspaceOf(flags.workspace), flags.from);
      requireTrusted(earlier, flags);
      return start(overrides, flags, { again: earlier.manifest });
    }),
  );

addEval(program);
addSft(program);

withTrust(withCommon(program.command('resume').description('resume a run from a checkpoint')))
  .argument('<run>', 'id of the run')
  .argument(
    '[settings...]',
    'settings to change from the resumed step on, as key=value, such as trainer.total_training_steps=200',
  )
  .option('--checkpoint <name>', 'such as step-000100 (default: the newest)')
  .option('--accept-damaged-logs', 'continue with the readable lines of logs that differ from their checksums')
  .option('--detach', 'return as soon as the trainer serves the run')
  .action((id: string, settings: string[], flags: ResumeFlags) => answer(flags, () => resume(id, settings, flags)));

addRuns(program);
addHalts(program);
addSet(program);

withCommon(program.command('presets').description('list the configurations that a run can start from')).action(
  (flags: CommonFlags) =>
    answer(flags, async () => {
      const found = presets(presetFolders(workspaceOf(flags.workspace)));
      return {
        document: found,
        plainText: found.map(({ name, description, error }) => `${name.padEnd(18)} ${error ?? description}`).join('\n'),
      };
    }),
);

addEpisodes(program);
addInspect(program);
addScore(program);
addGenerate(program);
addExport(program);
addDoctor(program);
addPlan(program);
addAlgo(program);
addConfig(program);
addSweep(program);
const env = addEnv(program);
addEnvNew(env);
addEnvObservations(env);
addEnvServe(env);
addEnvVersions(env);

program.parseAsync().catch((error: Error) => {
  if (!(error instanceof CommanderError))
    return answer({ json: process.argv.includes('--json') }, () => Promise.reject(error)); // an invalid option value
  process.exitCode = error.exitCode; // commander has printed the error
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    process.stdout.write(`${JSON.stringify({ error: { message: error.message } })}\n`);
});
