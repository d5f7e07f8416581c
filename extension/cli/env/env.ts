// `ragen env`: registers the commands that work on environments; `ragen env x` is implemented in x.ts.
import type { Command } from 'commander';
import { addEnvCheck } from './check';
import { addEnvList } from './list';
import { addEnvNew } from './new';
import { addEnvObservations } from './observations';
import { addEnvPlay } from './play';
import { addEnvServe } from './serve';
import { addEnvVersions } from './versions';

export function addEnv(program: Command): void {
  const env = program.command('env').description('list, check, play and serve environments');
  for (const add of [addEnvList, addEnvCheck, addEnvPlay, addEnvNew, addEnvObservations, addEnvServe, addEnvVersions])
    add(env);
}
