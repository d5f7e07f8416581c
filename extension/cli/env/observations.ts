// `ragen env observations ENVIRONMENT --seeds 10000..19999 --out data.jsonl`: writes the first observation of each
// seed's episode as JSON lines in the format of verl's data sets. The training data of RAGEN's first version has this
// format. If the environment fails at a seed, the command fails.
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { transcriptsOf } from '../../environments/tools/transcripts';
import { UserError } from '../../common/user-error';
import { storeError } from '../../node/files';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { collect, configOf } from '../options/environment-options';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface ObservationFlags extends CommonFlags {
  seeds: string;
  set: string[];
  mode: string;
  out?: string;
}

/** Maximum number of episodes that are open at the same time. */
const atATime = 256;

export function addEnvObservations(env: Command): void {
  withCommon(env.command('observations').description('write the first observation of each seed as JSON lines'))
    .argument('<environment>', 'name of a built-in environment, or path of an environment file')
    .option('--seeds <from..to>', 'first and last seed', '10000..10099')
    .option('--mode <mode>', 'train or val', 'train')
    .option(
      '--set <key=value>',
      'a key of the environment’s env_config, with its value; may be given several times',
      collect,
      [],
    )
    .option('--out <file>', 'output file, in JSON lines (default: standard output)')
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
  const rows = observationRows({ name, workspace, config, mode, first, last });
  if (out === undefined) {
    const shown: unknown[] = [];
    for await (const row of rows) shown.push(row);
    return { document: shown, plainText: shown.map(row => JSON.stringify(row)).join('\n') };
  }
  const file = resolve(workspace, out);
  try {
    await writeFile(file, asLines(rows));
  } catch (error) {
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : storeError('write', file, error);
  }
  const count = last - first + 1;
  return { document: { file, observations: count }, plainText: `${count} observations: ${file}` };
}

interface Asked {
  name: string;
  workspace: string;
  config: Record<string, unknown>;
  mode: 'train' | 'val';
  first: number;
  last: number;
}

async function* observationRows({ name, workspace, config, mode, first, last }: Asked): AsyncGenerator<object> {
  for (let from = first; from <= last; from += atATime) {
    const some = Array.from({ length: Math.min(atATime, last - from + 1) }, (_, i) => from + i);
    const shown = await transcriptsOf(
      some.map(seed => ({ env: name, config, seed, mode })),
      workspace,
    );
    for (const [i, seed] of some.entries()) {
      const transcript = shown[i];
      if ('error' in transcript) throw new UserError(`observations: seed ${seed}: ${transcript.error}`);
      yield {
        data_source: name,
        prompt: [{ role: 'user', content: transcript.observation }],
        ability: 'agent',
        extra_info: { split: mode, index: seed - first, seed },
      };
    }
  }
}

async function* asLines(rows: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const row of rows) yield `${JSON.stringify(row)}\n`;
}

function seedRange(text: string): [first: number, last: number] {
  const [, from, to] = /^(\d{1,10})\.\.(\d{1,10})$/.exec(text) ?? [];
  const [first, last] = [Number(from), Number(to)];
  if (!(last >= first))
    throw new UserError(`--seeds is ${text}: give the first and the last seed, such as 10000..10099`);
  return [first, last];
}
