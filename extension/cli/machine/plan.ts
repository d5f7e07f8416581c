// `ragen plan`: reports the resolved configuration, the memory use and the time per step of a run without starting it.
// With --stdio, it answers the editor's requests until standard input ends. Contract: if the run does not fit into
// memory, the command still succeeds. If the configuration is invalid, the command fails with the error of `ragen
// train`.
import { InvalidArgumentError } from 'commander';
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { assumedRates } from '../../trainer/plan/remote-plan';
import { defaultConfig, planRun } from '../../trainer/plan/run-plan';
import type { RunReportRequest } from '../../trainer/plan/run-plan';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { questionOf, formatRun } from './doctor';
import type { PlanFlags } from './doctor';
import { workspaceOf } from '../options/workspace';
import { servePlanner } from './plan-service';

export function addPlan(program: Command): void {
  program
    .command('plan')
    .description('estimate memory and time of a run without starting it')
    .argument('[overrides...]', 'key=value, such as lora.rank=16')
    .option('--model <model>', 'folder, hub model or bundled model that replaces the configuration’s model_path')
    .option('--config-name <name>', `name of a configuration (default with --model or overrides: ${defaultConfig})`)
    .option('--config <file>', 'configuration file')
    .option('--workspace <folder>', 'folder with configurations and runs (default: the current folder)')
    .option('--measure', 'with workbench.engine=tinker: measure the rates of the server')
    .option('--round-trip-ms <ms>', 'milliseconds until the server has sampled one token', positive)
    .option('--sampled-per-s <tokens>', 'tokens that the server samples per second', positive)
    .option('--scored-per-s <tokens>', 'tokens per second of the server’s forward passes', positive)
    .option('--trained-per-s <tokens>', 'tokens per second of the server’s passes with gradient', positive)
    .option('--json', 'print one JSON document on standard output')
    .option('--stdio', "answer an editor's requests on standard input, until standard input ends")
    .addHelpText(
      'after',
      `
Without --measure and rates, the rates of a server are assumed: ${assumedRates.sampled_per_s} tokens sampled, ${assumedRates.scored_per_s} scored and ${assumedRates.trained_per_s} trained per second, and a round trip of ${1000 * assumedRates.round_trip_s} ms.
Output with --json: {"run": {"rows": [{"what", "bytes", "how", "phase"}, …], "peak", "fits", "remedy", "time", "remote", …}, "config": {…}, "ignored": […]}.`,
    )
    .action((overrides: string[], flags: RemoteFlags) =>
      flags.stdio ? servePlanner() : answer(flags, () => plan(overrides, flags)),
    );
}

interface RemoteFlags extends PlanFlags {
  measure?: boolean;
  stdio?: boolean;
  roundTripMs?: number;
  sampledPerS?: number;
  scoredPerS?: number;
  trainedPerS?: number;
}

async function plan(overrides: readonly string[], flags: RemoteFlags): Promise<Answer> {
  const question = { ...questionOf(overrides, flags, workspaceOf(flags.workspace)), rates: ratesOf(flags) };
  const { run, loaded } = await planRun(question, 'plan');
  const { config, ignored, sources } = loaded;
  return { document: { run, config, ignored, sources }, plainText: formatRun(run).join('\n') };
}

/**
 * Returns the server's speed that the flags state, or 'measure' if the speed is to be measured. Returns undefined if no
 * flag concerns the speed.
 */
function ratesOf(flags: RemoteFlags): RunReportRequest['rates'] {
  const { roundTripMs, sampledPerS, scoredPerS, trainedPerS } = flags;
  const given = {
    ...(roundTripMs !== undefined && { round_trip_s: roundTripMs / 1000 }),
    ...(sampledPerS !== undefined && { sampled_per_s: sampledPerS }),
    ...(scoredPerS !== undefined && { scored_per_s: scoredPerS }),
    ...(trainedPerS !== undefined && { trained_per_s: trainedPerS }),
  };
  const isGiven = Object.keys(given).length > 0;
  if (flags.measure && isGiven)
    throw new UserError('plan: --measure and rates are both given: omit --measure, or omit the rates');
  return flags.measure ? 'measure' : isGiven ? given : undefined;
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0) || !Number.isFinite(value)) throw new InvalidArgumentError('Give a number above 0.');
  return value;
}
