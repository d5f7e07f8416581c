// `ragen inspect`: scores the tokens of a stored episode under a checkpoint of its run, or maps how much its answers depend
// on the parts of its pictures, and prints a table or JSON.
// With --stdio, it answers the editor's requests about runs until standard input ends. It can run at the same time as
// the run's trainer, because it does not claim the run, has a low priority and uses no GPU.
import { constants, setPriority } from 'node:os';
import { Option, type Command } from 'commander';
import { explainedParts, type ExplainedPart } from '../../protocol/heat-maps';
import type { Rescored } from '../../protocol/inspection';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { Inspector } from '../../trainer/inspection/inspector';
import { serveInspector } from '../../trainer/inspection/inspector-service';
import { RunFolder } from '../../trainer/store/run-folder';
import { parseEpisodeId } from '../input/episode-id';
import { answer } from '../output/answer';
import { heatMapsText } from '../output/heat-maps-text';
import { wholeNumber } from '../options/model-options';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface InspectFlags extends CommonFlags {
  checkpoint?: string;
  all?: boolean;
  heatMap?: ExplainedPart;
  turn?: number;
  threads: number;
  stdio?: boolean;
}

export function addInspect(program: Command): void {
  withCommon(
    program.command('inspect').description('score the tokens of a stored episode under a checkpoint of its run'),
  )
    .argument('[run]', 'id of the run')
    .argument('[episode]', 'id of the episode, such as train-000012-g003-m05')
    .option(
      '--checkpoint <name>',
      'name of a checkpoint, such as step-000100, or initial (default: the newest; for a heat map, the nearest to the weights that played the episode)',
    )
    .option('--all', 'score the tokens of prompts in addition to the sampled tokens')
    .addOption(
      new Option(
        '--heat-map [part]',
        'map how much the log-prob of each turn’s response, or of a part of it, depends on the parts of its pictures',
      )
        .choices(explainedParts)
        .preset('response'),
    )
    .option('--turn <number>', 'map only this turn', wholeNumber('--turn', 1, 1_000_000))
    .option('--threads <count>', 'threads on the CPU; 0 for half of the cores', wholeNumber('--threads', 0, 1024), 0)
    .option('--stdio', "answer an editor's requests on standard input, until standard input ends")
    .addHelpText(
      'after',
      `
Prints for each sampled token the probability at sampling and under the checkpoint, the rank, the entropy of the distribution, and the top
tokens. If the run has a reference policy or a critic, also prints the reference log-prob or the critic's value. The recorded ids are scored
and not tokenized again. With --json: {"checkpoint", "temperature", "hasReference", "hasCritic", "tokens": […]}, one entry per token of the episode.

With --heat-map, prints for each picture of a turn the norm of gradient × feature of each of its cells, in nats, instead. With --json:
{"checkpoint", "part", "turns": [{"turn", "tokens", "logprob", "earlier", "pictures": [{"rows", "columns", "values": […]}]}]}.`,
    )
    .action(async (run: string | undefined, episode: string | undefined, flags: InspectFlags) => {
      setPriority(constants.priority.PRIORITY_LOW); // inherited by threads and processes started from here on
      if (flags.stdio) return serveInspector(flags.threads);
      return answer(flags, async () => {
        if (run === undefined || episode === undefined)
          throw new UserError('inspect: name a run and an episode: ragen inspect RUN EPISODE');
        const { path: folder } = RunFolder.find(workspaceOf(flags.workspace), run);
        const ref = { folder, ...parseEpisodeId('inspect', episode) };
        if (flags.heatMap !== undefined) {
          const { heatMap: part, turn, checkpoint } = flags;
          const maps = await inspecting(flags, inspector => inspector.heatMaps({ ...ref, part, turn, checkpoint }));
          return { document: maps, plainText: heatMapsText(maps) };
        }
        if (flags.turn !== undefined) throw new UserError('inspect: --turn selects a turn of --heat-map: give both');
        const { checkpoint, all } = flags;
        const found = await inspecting(flags, inspector => inspector.rescore({ ...ref, checkpoint, all }));
        return { document: found, plainText: table(found) };
      });
    });
}

async function inspecting<T>(
  { threads }: Pick<InspectFlags, 'threads'>,
  work: (inspector: Inspector) => Promise<T>,
): Promise<T> {
  const phase = (name: string): void => void process.stderr.write(`${name} …\n`);
  const inspector = new Inspector(threads, { phase, whatIfTokens: () => undefined });
  try {
    return await work(inspector);
  } finally {
    await inspector.close();
  }
}

function table({ tokens, checkpoint, hasReference, hasCritic }: Rescored): string {
  const fixed = (x: number | null, digits = 3): string => (x === null ? '' : x.toFixed(digits));
  const heads = [
    'token',
    'id',
    'p',
    'log-prob',
    'rank',
    'entropy',
    ...(hasReference ? ['reference'] : []),
    ...(hasCritic ? ['value'] : []),
    'top tokens',
  ];
  const rows = tokens
    .filter(({ logprob }) => logprob !== null)
    .map(({ id, text, logprob, rank, entropy, reference, value, top }) => [
      JSON.stringify(text),
      String(id),
      fixed(Math.exp(logprob!)),
      fixed(logprob),
      String(rank),
      fixed(entropy),
      ...(hasReference ? [fixed(reference)] : []),
      ...(hasCritic ? [fixed(value)] : []),
      top.map(each => `${JSON.stringify(each.text)} ${fixed(Math.exp(each.logprob), 2)}`).join('  '),
    ]);
  const widths = heads.map((head, i) =>
    maximum(
      rows.map(row => row[i].length),
      head.length,
    ),
  );
  const last = heads.length - 1;
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === 0 || i === last ? cell.padEnd(i === last ? 0 : widths[i]) : cell.padStart(widths[i])))
      .join('  ');
  return [`Under ${checkpoint.name}`, '', line(heads), ...rows.map(line)].join('\n');
}
