// `ragen presets`: lists the configurations that a run can start from.
import type { Command } from 'commander';
import { presets } from '../../trainer/config/load-config';
import { withCommon, type CommonFlags } from '../options/run-options';
import { presetFolders, workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';

export function addPresets(program: Command): void {
  withCommon(program.command('presets').description('list the configurations that a run can start from')).action(
    (flags: CommonFlags) =>
      answer(flags, async () => {
        const found = presets(presetFolders(workspaceOf(flags.workspace)));
        return {
          document: found,
          plainText: found
            .map(({ name, description, error }) => `${name.padEnd(18)} ${error ?? description}`)
            .join('\n'),
        };
      }),
  );
}
