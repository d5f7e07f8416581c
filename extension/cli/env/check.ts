// `ragen env check`: checks an environment against the environment contract.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { checkEnvironment } from '../../environments/tools/contract-process';
import { environmentSpec } from '../../environments/tools/environment-sources';
import type { ContractReport } from '../../protocol/environment-tools';
import { collect, configOf } from '../options/environment-options';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';

interface CheckFlags extends CommonFlags {
  set: string[];
  seeds: string;
  steps: string;
  timeout: string;
}

export function addEnvCheck(env: Command): void {
  withCommon(env.command('check').description('check an environment against the environment contract'))
    .argument('<environment>', 'name of a built-in environment, or path of an environment file')
    .option(
      '--set <key=value>',
      'a key of the environment’s env_config, with its value; may be given several times',
      collect,
      [],
    )
    .option('--seeds <n>', 'number of episodes of random play', '8')
    .option('--steps <n>', 'maximum actions per episode', '60')
    .option('--timeout <ms>', 'time limit of one call; the environment may set a longer time limit', '10000')
    .addHelpText(
      'after',
      `
Exit code 1 if a check failed. Output with --json: {"environment", "source", "checks": [{"name", "state": "passed",
"failed" or "skipped", "evidence", "at": "file:line"}, …]}.`,
    )
    .action((name: string, flags: CheckFlags) =>
      answer(flags, async () => {
        const workspace = workspaceOf(flags.workspace);
        const spec = await environmentSpec(name, configOf(flags.set), workspace);
        const report = await checkEnvironment(spec, workspace, {
          seeds: count(flags.seeds, '--seeds'),
          steps: count(flags.steps, '--steps'),
          timeoutMs: count(flags.timeout, '--timeout'),
        });
        const failed = report.checks.filter(({ state }) => state === 'failed').length;
        const sentence = `${report.environment}: ${failed} of ${report.checks.length} checks failed`;
        return { document: report, plainText: formatCheck(report), ...(failed > 0 && { failed: sentence }) };
      }),
    );
}

const marks = { passed: '✓', failed: '✗', skipped: '–' } as const;

function formatCheck({ source, checks }: ContractReport): string {
  return checks
    .map(
      ({ name, state, evidence, at }) =>
        `${marks[state]} ${name}\n  ${evidence}${at !== undefined && at !== source ? ` (${at})` : ''}`,
    )
    .join('\n');
}

function count(text: string, option: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UserError(`${option} is ${text}: give a whole number from 1 on`);
  return Number(text);
}
