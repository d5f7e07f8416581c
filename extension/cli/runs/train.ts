// `ragen train`: creates a run and follows it to its end.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { requireTrusted } from '../../trainer/run/trusted-run';
import { RunFolder } from '../../trainer/store/run-folder';
import { withConfig, withTrust, type StartFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';
import { start } from '../run-lifecycle/run-and-follow';

export function addTrain(program: Command): void {
  withTrust(withConfig(program.command('train').description('train a policy')))
    .option('--from <run>', 'use the configuration of this run, but replace the run’s overrides by the given overrides')
    .action((overrides: string[], flags: StartFlags & { from?: string }) =>
      answer(flags, async () => {
        if (flags.from === undefined) return start(overrides, flags);
        if (flags.configName ?? flags.config)
          throw new UserError(
            `--from ${flags.from} already selects a configuration: leave out --config-name and --config`,
          );
        const earlier = RunFolder.find(workspaceOf(flags.workspace), flags.from);
        requireTrusted(earlier, flags);
        return start(overrides, flags, { again: earlier.manifest });
      }),
    );
}
