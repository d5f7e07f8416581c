#!/usr/bin/env node
// The CLI. The commands are grouped into folders: the file x.ts of a folder implements `ragen x`, and env/x.ts
// implements `ragen env x`. Code that several commands use is in the folders `options`, `input`, `output`,
// `run-lifecycle` and `model-files`. Every command takes --json: standard output is then one JSON document, and
// progress and notes go to standard error. A user error prints one sentence and results in exit code 1.
import { Command, CommanderError } from 'commander';
import { clearPrinted } from '../node/secrets';
import { answer } from './output/answer';
import { endWithReader } from './output/closed-output';

/**
 * Registration functions of the commands by their names, in the order of the help. The code of a command is loaded only
 * if the command is given: loading all of it takes longer than most commands.
 */
const commands: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  train: async () => (await import('./runs/train')).addTrain,
  eval: async () => (await import('./runs/eval')).addEval,
  sft: async () => (await import('./models/sft')).addSft,
  resume: async () => (await import('./runs/resume')).addResume,
  runs: async () => (await import('./runs/runs')).addRuns,
  attach: async () => (await import('./runs/attach')).addAttach,
  diagnose: async () => (await import('./runs/diagnose')).addDiagnose,
  stop: async () => (await import('./runs/stop')).addStop,
  pause: async () => (await import('./runs/pause')).addPause,
  set: async () => (await import('./runs/set')).addSet,
  presets: async () => (await import('./configuration/presets')).addPresets,
  episodes: async () => (await import('./runs/episodes')).addEpisodes,
  search: async () => (await import('./runs/search')).addSearch,
  query: async () => (await import('./query/query')).addQuery,
  notebook: async () => (await import('./runs/notebook')).addNotebook,
  report: async () => (await import('./report/report')).addReport,
  leaderboard: async () => (await import('./runs/leaderboard')).addLeaderboard,
  timeline: async () => (await import('./runs/timeline')).addTimeline,
  inspect: async () => (await import('./runs/inspect')).addInspect,
  score: async () => (await import('./models/score')).addScore,
  generate: async () => (await import('./models/generate')).addGenerate,
  gateway: async () => (await import('./models/gateway')).addGateway,
  export: async () => (await import('./models/export')).addExport,
  doctor: async () => (await import('./machine/doctor')).addDoctor,
  plan: async () => (await import('./machine/plan')).addPlan,
  algo: async () => (await import('./algo/algo')).addAlgo,
  config: async () => (await import('./configuration/config')).addConfig,
  sweep: async () => (await import('./sweep/sweep')).addSweep,
  claims: async () => (await import('./sweep/claims')).addClaims,
  jobs: async () => (await import('./jobs/jobs')).addJobs,
  work: async () => (await import('./runs/work')).addWork,
  env: async () => (await import('./env/env')).addEnv,
  plugin: async () => (await import('./plugin/plugin')).addPlugin,
  engine: async () => (await import('./engine/engine')).addEngine,
};

clearPrinted(process.stdout, process.stderr);
endWithReader(process.stdout, process.stderr);

const program = new Command('ragen')
  .description('Trains LLM agents that reason, by reinforcement learning over whole episodes.')
  .exitOverride();
async function run(): Promise<void> {
  const [, , name = ''] = process.argv;
  const given = Object.hasOwn(commands, name) ? [commands[name]] : Object.values(commands); // all for the help
  for (const load of given) (await load())(program);
  await program.parseAsync();
}

run().catch((error: Error) => {
  if (!(error instanceof CommanderError))
    return answer({ json: process.argv.includes('--json') }, () => Promise.reject(error)); // an invalid option value
  process.exitCode = error.exitCode; // commander has printed the error
  if (error.exitCode !== 0 && process.argv.includes('--json'))
    process.stdout.write(`${JSON.stringify({ error: { message: error.message } })}\n`);
});
