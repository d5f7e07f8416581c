// `ragen engine`: registers the commands on servers of the Tinker API.
import type { Command } from 'commander';
import { addEngineProbe } from './probe';

export function addEngine(program: Command): void {
  addEngineProbe(program.command('engine').description('servers that sample and train instead of this machine'));
}
