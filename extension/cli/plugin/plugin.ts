// `ragen plugin`: registers the commands that work on plug-ins; `ragen plugin x` is implemented in x.ts.
import type { Command } from 'commander';
import { addPluginCheck } from './check';
import { addPluginNew } from './new';

export function addPlugin(program: Command): void {
  const plugin = program.command('plugin').description('write and check plug-ins');
  for (const add of [addPluginNew, addPluginCheck]) add(plugin);
}
