// `ragen search TEXT`: searches the texts of all runs' episodes, and prints each hit as soon as it is found.
import { basename } from 'node:path';
import type { Command } from 'commander';
import { counted } from '../../common/numbers';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { searchEpisodes, type EpisodeHit } from '../../node/search-episodes';
import { RunFolder } from '../../trainer/store/run-folder';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';

interface SearchFlags extends CommonFlags {
  runs?: string[];
  limit: string;
}

export function addSearch(program: Command): void {
  withCommon(program.command('search').description('search the texts of the episodes of all runs'))
    .argument('<text>', 'text to find in states, answers, final states and errors, ignoring case')
    .option('--runs <run...>', 'ids of the runs to search (default: all)')
    .option('--limit <n>', 'maximum number of episodes', '100')
    .addHelpText(
      'after',
      `
Searches the newest run and its newest step first, and prints one line per episode as soon as it is found. Output with --json: a list of
{"run", "step", "mode", "id", "tag", "turn", "part", "excerpt"}; "turn" is null if only the final state or the error contains the text.`,
    )
    .action((text: string, flags: SearchFlags) => answer(flags, () => search(text, flags)));
}

async function search(text: string, flags: SearchFlags): Promise<Answer> {
  const { limit, json } = flags;
  if (!/^[1-9]\d{0,6}$/.test(limit)) throw new UserError(`--limit is ${limit}: give a whole number from 1 on`);
  if (text.trim() === '') throw new UserError('the text to search for is empty: give at least one character');
  const workspace = workspaceOf(flags.workspace);
  const folders = flags.runs
    ? flags.runs.map(run => RunFolder.find(workspace, run).path)
    : RunFolder.survey(workspace).runs.map(({ path }) => path);
  const found: (Omit<EpisodeHit, 'folder'> & { run: string })[] = [];
  for await (const { folder, ...hit } of searchEpisodes(folders, text)) {
    const row = { run: basename(folder), ...hit };
    found.push(row);
    if (!json) process.stdout.write(`${formatHit(row)}\n`);
    if (found.length >= Number(limit)) break;
  }
  const runs = new Set(found.map(({ run }) => run)).size;
  const summary =
    found.length === 0
      ? `No episode of ${counted(folders.length, 'run')} contains this text.`
      : `${counted(found.length, 'episode')} of ${counted(runs, 'run')}${found.length >= Number(limit) ? `; stopped at --limit ${limit}` : ''}`;
  return { document: found, plainText: summary };
}

const formatHit = ({ run, id, turn, part, excerpt }: Omit<EpisodeHit, 'folder'> & { run: string }): string =>
  printable(`${run}  ${id}  ${turn === null ? part : `turn ${turn}, ${part}`}: ${excerpt}`);
