// `ragen plugin check FILE`: builds a plug-in, checks its types, loads it and calls its functions with sample data.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { checkPlugin, type PluginCheck } from '../../trainer/plugins/plugin-check';
import { answer } from '../output/answer';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

export function addPluginCheck(plugin: Command): void {
  withCommon(plugin.command('check').description('check a plug-in with sample data'))
    .argument('<file>', 'path of the plug-in’s file')
    .option('--timeout <ms>', 'time limit of one call', '10000')
    .addHelpText(
      'after',
      `
Exit code 1 if a check failed. Output with --json: {"file", "kind", "name", "version", "checks": [{"name", "state":
"passed" or "failed", "evidence"}, …]}; kind, name and version are null if the file does not load.`,
    )
    .action((file: string, flags: CommonFlags & { timeout: string }) =>
      answer(flags, async () => {
        if (!/^[1-9]\d{0,6}$/.test(flags.timeout))
          throw new UserError(`--timeout is ${flags.timeout}: give a whole number of milliseconds from 1 on`);
        const report = await checkPlugin(file, workspaceOf(flags.workspace), Number(flags.timeout));
        const failed = report.checks.filter(({ state }) => state === 'failed').length;
        const sentence = `${file}: ${failed} of ${report.checks.length} checks failed`;
        return { document: report, plainText: format(report.checks), ...(failed > 0 && { failed: sentence }) };
      }),
    );
}

const format = (checks: readonly PluginCheck[]): string =>
  checks.map(({ name, state, evidence }) => `${state === 'passed' ? '✓' : '✗'} ${name}\n  ${evidence}`).join('\n');
