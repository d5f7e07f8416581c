// `ragen env observations ENVIRONMENT --seeds 10000..19999 --out data.jsonl`: writes the first observation of each
// seed's episode as JSON lines in the format of verl's data sets, like the training data of RAGEN's first version. An
// environment failure at any seed ends the command.
import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { once } from 'node:events';
import type { Command } from 'commander';
import { transcriptsOf } from '../environment-tools/transcripts';
import { UserError } from '../../protocol/user-error';
import { answer } from './answer';
import type { Answer } from './answer';
import { collect, configOf } from './env';
import { withCommon } from './serve';
import type { CommonFlags } from './serve';
import { workspaceOf } from './start';

interface ObservationFlags extends CommonFlags {
  seeds: string;
  set: string[];
  mode: string;
  out?: string;
}

/** Maximum number of open episodes. */
const atATime = 256;

/** Adds the subcommand to `ragen env`. */
export function addEnvObservations(env: Command): void {
  withCommon(env.command('observations').description('write the first observation of each seed as JSON lines'))
    .argument('<environment>', 'a built-in environment, or the path of its file')
    .option('--seeds <from..to>', 'first and last seed', '10000..10099')
    .option('--mode <mode>', 'train or val', 'train')
    .option('--set <key=value>', 'a value of its env_config; may be given several times', collect, [])
    .option('--out <file>', 'file of JSON lines (default: standard output)')
    .action((name: string, flags: ObservationFlags) => answer(flags, () => observations(name, flags)));
}

async function observations(
  name: string,
  { seeds, mode, set, out, workspace: folder }: ObservationFlags,
): Promise<Answer> {
  const workspace = workspaceOf(folder);
  const [first, last] = seedRange(seeds);
  if (mode !== 'train' && mode !== 'val') throw new UserError(`--mode is ${mode}: use train or val`);
  const config = configOf(set);
  const rows: unknown[] = [];
  const file = out === undefined ? undefined : createWriteStream(resolve(workspace, out));
  for (let from = first; from <= last; from += atATime) {
    const some = Array.from({ length: Math.min(atATime, last - from + 1) }, (_, i) => from + i);
    const shown = await transcriptsOf(
      some.map(seed => ({ env: name, config, seed, mode })),
      workspace,
    );
    for (const [i, seed] of some.entries()) {
      const transcript = shown[i];
      if ('error' in transcript) throw new UserError(`observations: seed ${seed}: ${transcript.error}`);
      const extra_info = { split: mode, index: seed - first, seed };
      const row = {
        data_source: name,
        prompt: [{ role: 'user', content: transcript.observation }],
        ability: 'agent',
        extra_info,
      };
      if (!file) rows.push(row);
      else if (!file.write(`${JSON.stringify(row)}\n`)) await once(file, 'drain');
    }
  }
  const count = last - first + 1;
  if (!file) return { document: rows, words: rows.map(row => JSON.stringify(row)).join('\n') };
  file.end();
  await once(file, 'finish');
  return {
    document: { file: resolve(workspace, out!), observations: count },
    words: `${count} observations: ${resolve(workspace, out!)}`,
  };
}

function seedRange(text: string): [first: number, last: number] {
  const [, from, to] = /^(\d{1,10})\.\.(\d{1,10})$/.exec(text) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (!(last >= first))
    throw new UserError(`--seeds is ${text}: give the first and the last seed, such as 10000..10099`);
  return [first, last];
}
