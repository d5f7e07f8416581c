// `ragen env new NAME`: writes a new environment, its test cases and a training configuration. The editor's command
// uses the same template. Existing files are never overwritten.
import { relative } from 'node:path';
import type { Command } from 'commander';
import { scaffoldEnvironment } from '../../node/environment-scaffold';
import { writeEnvironmentTypes } from '../../node/environment-types';
import { installation } from '../../node/installation';
import { answer } from '../output/answer';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

export function addEnvNew(env: Command): void {
  withCommon(env.command('new').description('write a new environment with test cases and a training configuration'))
    .argument('<name>', 'name of lower-case letters, digits and underscores')
    .action((name: string, flags: CommonFlags) =>
      answer(flags, async () => {
        const workspace = workspaceOf(flags.workspace);
        const files = await scaffoldEnvironment(installation.root, workspace, name);
        await writeEnvironmentTypes(installation.root, workspace);
        const lines = [
          ...files.map(file => relative(workspace, file)),
          `Check it: ragen env check ${name}`,
          `Play it: ragen env play ${name}`,
          `Train on it: ragen train --config-name ${name}`,
        ];
        return { document: { name, files }, plainText: lines.join('\n') };
      }),
    );
}
