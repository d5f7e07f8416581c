// `ragen plan`: reports the resolved configuration, the memory use and the time per step of a run without starting it.
// Contract: if the run does not fit into memory, the command still succeeds. If the configuration is invalid, the
// command fails with the error of `ragen train`.
import type { Command } from 'commander';
import { defaultConfig, planRun } from '../../trainer/plan/run-plan';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { questionOf, formatRun } from './doctor';
import type { PlanFlags } from './doctor';
import { workspaceOf } from '../options/workspace';

export function addPlan(program: Command): void {
  program
    .command('plan')
    .description('estimate memory and time of a run without starting it')
    .argument('[overrides...]', 'key=value, such as lora.rank=16')
    .option('--model <model>', 'folder, hub model or bundled model that replaces the configuration’s model_path')
    .option('--config-name <name>', `name of a configuration (default with --model or overrides: ${defaultConfig})`)
    .option('--config <file>', 'configuration file')
    .option('--workspace <folder>', 'folder with configurations and runs (default: the current folder)')
    .option('--json', 'print one JSON document on standard output')
    .addHelpText(
      'after',
      `
Output with --json: {"run": {"rows": [{"what", "bytes", "how", "phase"}, …], "peak", "fits", "remedy", "time", …}, "config": {…}, "ignored": […]}.`,
    )
    .action((overrides: string[], flags: PlanFlags) => answer(flags, () => plan(overrides, flags)));
}

async function plan(overrides: readonly string[], flags: PlanFlags): Promise<Answer> {
  const { run, loaded } = await planRun(questionOf(overrides, flags, workspaceOf(flags.workspace)), 'plan');
  const { config, ignored, sources } = loaded;
  return { document: { run, config, ignored, sources }, plainText: formatRun(run).join('\n') };
}
