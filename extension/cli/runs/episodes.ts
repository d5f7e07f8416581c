// `ragen episodes RUN`: lists the episodes of a run, prints them in full, or writes them as one HTML file. The filter
// has the same syntax as on the Episodes page. Columns and filter are shared with this page (run-data/episode-table.ts,
// episode-filter.ts); only one episode file is in memory at a time.
import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { EpisodeRow } from '../../run-data/episode-table';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { RunFolder } from '../../trainer/store/run-folder';
import { matchingEpisodes, type Found } from '../trajectories/matching-episodes';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { episodesHtml } from '../output/episodes-html';
import { withCommon } from '../options/run-options';
import type { CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';

interface EpisodesFlags extends CommonFlags {
  limit: string;
  print?: boolean;
  html?: string;
}

export function addEpisodes(program: Command): void {
  withCommon(program.command('episodes').description('list, filter, print and export the episodes of a run'))
    .argument('<run>', 'id of the run')
    .argument(
      '[filter...]',
      'filter terms, such as success:false step:4..8 tag:lake mode:val text:stuck; write -- before terms that begin with -',
    )
    .option('--limit <n>', 'maximum number of episodes, the newest first', '50')
    .option('--print', 'print complete episodes instead of one line per episode')
    .option('--html <file>', 'write the episodes as one HTML file')
    .addHelpText(
      'after',
      `
Output with --json: a list of {"id", "step", "mode", "tag", "success", "score", "reward", …}; with --print the complete episodes as in the run
folder; with --html {"file", "episodes"}.`,
    )
    .action((run: string, filter: string[], flags: EpisodesFlags) =>
      answer(flags, async () => episodes(run, filter, flags)),
    );
}

function episodes(run: string, filter: readonly string[], flags: EpisodesFlags): Answer {
  const workspace = workspaceOf(flags.workspace);
  const folder = RunFolder.find(workspace, run);
  if (!/^[1-9]\d{0,6}$/.test(flags.limit))
    throw new UserError(`--limit is ${flags.limit}: give a whole number from 1 on`);
  const found = search(folder, filter.join(' '), Number(flags.limit));
  if (flags.html !== undefined) {
    const file = resolve(workspace, flags.html);
    writeFileSync(
      file,
      episodesHtml(
        folder.manifest.name,
        found.map(({ episode }) => episode),
      ),
    );
    return { document: { file, episodes: found.length }, plainText: `${found.length} episodes: ${file}` };
  }
  if (flags.print)
    return { document: found.map(({ episode }) => episode), plainText: found.map(formatEpisode).join('\n\n') || none };
  return {
    document: found.map(({ row }) => row),
    plainText: found.map(({ row }) => formatRow(row)).join('\n') || none,
  };
}

const none = 'No episodes match.';

/** Returns the newest `limit` episodes that match a filter line. @throws UserError for an invalid line */
function search(folder: RunFolder, line: string, limit: number): Found[] {
  const found: Found[] = [];
  for (const match of matchingEpisodes(folder, line)) if (found.push(match) === limit) break;
  return found;
}

function formatRow({ id, tag, success, score, turns, tokens, invalid, kept }: EpisodeRow): string {
  const marks = [success === null ? '–' : success ? '✓' : '✗', kept === false ? 'dropped' : ''].join(' ');
  return printable(
    `${id}  ${tag}  ${score.toFixed(2).padStart(7)}  ${turns} turns  ${tokens ?? 'unknown'} tokens  ${invalid} invalid  ${marks}`,
  );
}

function formatEpisode({ row, episode }: Found): string {
  const turns = episode.turns.map(
    ({ turn, state, raw, reward }) => `── turn ${turn} ──\n${state}\n\n${raw}\n\nreward ${reward}`,
  );
  return [formatRow(row), ...turns, `── end ──\n${episode.final_state}`]
    .map(text => text.split('\n').map(printable).join('\n'))
    .join('\n');
}
