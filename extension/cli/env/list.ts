// `ragen env list`: lists the built-in environments and the environments of the workspace.
import type { Command } from 'commander';
import { listEnvironments } from '../../environments/tools/environment-list';
import type { ListedEnvironment } from '../../protocol/environment-tools';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';

export function addEnvList(env: Command): void {
  withCommon(
    env.command('list').description('list the built-in environments and the environments of this folder'),
  ).action((flags: CommonFlags) =>
    answer(flags, async () => {
      const listed = await listEnvironments(workspaceOf(flags.workspace));
      return { document: listed, plainText: listed.map(formatListed).join('\n') };
    }),
  );
}

function formatListed({ env_type, actions, has_solver, config, missing }: ListedEnvironment): string {
  const actionNames = actions ? Object.values(actions).join(', ') : 'text';
  const about = missing ?? `takes ${actionNames}${has_solver ? '; has a solver' : ''}`;
  const keys = config && `\n${' '.repeat(15)}${Object.keys(config).join(', ')}`;
  return `${env_type.padEnd(14)} ${about}${keys ?? ''}`;
}
