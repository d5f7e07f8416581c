#!/usr/bin/env node
// The CLI. The commands are grouped into folders: the file x.ts of a folder implements `ragen x`, and env/x.ts
// implements `ragen env x`. Code that several commands use is in the folders `options`, `input`, `output`,
// `run-lifecycle` and `model-files`. Every command takes --json: standard output is then one JSON document, and
// progress and notes go to standard error. A user error prints one sentence and results in exit code 1.
import { Command, CommanderError } from 'commander';
import { clearPrinted } from '../node/secrets';
import { addAlgo } from './algo/algo';
import { addConfig } from './configuration/config';
import { addPresets } from './configuration/presets';
import { addEngine } from './engine/engine';
import { addEnv } from './env/env';
import { addDoctor } from './machine/doctor';
import { addPlan } from './machine/plan';
import { addExport } from './models/export';
import { addGenerate } from './models/generate';
import { addScore } from './models/score';
import { addSft } from './models/sft';
import { addJobs } from './jobs/jobs';
import { answer } from './output/answer';
import { endWithReader } from './output/closed-output';
import { addQuery } from './query/query';
import { addReport } from './report/report';
import { addAttach } from './runs/attach';
import { addDiagnose } from './runs/diagnose';
import { addEpisodes } from './runs/episodes';
import { addEval } from './runs/eval';
import { addInspect } from './runs/inspect';
import { addLeaderboard } from './runs/leaderboard';
import { addNotebook } from './runs/notebook';
import { addPause } from './runs/pause';
import { addResume } from './runs/resume';
import { addRuns } from './runs/runs';
import { addSearch } from './runs/search';
import { addSet } from './runs/set';
import { addStop } from './runs/stop';
import { addTimeline } from './runs/timeline';
import { addTrain } from './runs/train';
import { addWork } from './runs/work';
import { addClaims } from './sweep/claims';
import { addSweep } from './sweep/sweep';

/** Registration functions of the commands, in the order of the help. */
const commands: readonly ((program: Command) => void)[] = [
  addTrain,
  addEval,
  addSft,
  addResume,
  addRuns,
  addAttach,
  addDiagnose,
  addStop,
  addPause,
  addSet,
  addPresets,
  addEpisodes,
  addSearch,
  addQuery,
  addNotebook,
  addReport,
  addLeaderboard,
  addTimeline,
  addInspect,
  addScore,
  addGenerate,
  addExport,
  addDoctor,
  addPlan,
  addAlgo,
  addConfig,
  addSweep,
  addClaims,
  addJobs,
  addWork,
  addEnv,
  addEngine,
];

clearPrinted(process.stdout, process.stderr);
endWithReader(process.stdout, process.stderr);

const program = new Command('ragen')
  .description('Trains LLM agents that reason, by reinforcement learning over whole episodes.')
  .exitOverride();
for (const add of commands) add(program);

program.parseAsync().catch((error: Error) => {
  if (!(error instanceof CommanderError))
    return answer({ json: process.argv.includes('--json') }, () => Promise.reject(error)); // an invalid option value
  process.exitCode = error.exitCode; // commander has printed the error
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    process.stdout.write(`${JSON.stringify({ error: { message: error.message } })}\n`);
});
