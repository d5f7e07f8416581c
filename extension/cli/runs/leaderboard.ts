// `ragen leaderboard [FOLDER]`: compares the evaluations of a folder, as text, JSON, Markdown or CSV.
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { maximum } from '../../common/lists';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { hasEntrySync, hasRunFile, readRunFileSync, runNamesSync } from '../../node/read-run-file';
import { evaluationSchema } from '../../run-data/evaluation-file';
import { leaderboardOf, type EvaluatedRun, type LeaderboardTable } from '../../run-data/leaderboard';
import {
  differenceText,
  leaderboardCsv,
  leaderboardMarkdown,
  leaderboardTexts,
} from '../../run-data/leaderboard-texts';
import { runFiles, runsFolder } from '../../run-data/run-file-names';
import { RunFolder } from '../../trainer/store/run-folder';
import type { Parse } from '../options/model-options';
import { answer, type Answer } from '../output/answer';

type Format = 'text' | 'markdown' | 'csv';

interface LeaderboardFlags {
  format: Format;
  out?: string;
  json?: boolean;
}

const formatOf: Parse<Format> = text => {
  if (text === 'text' || text === 'markdown' || text === 'csv') return text;
  throw new UserError(`--format is ${JSON.stringify(text)}: use one of text, markdown, csv`);
};

export function addLeaderboard(program: Command): void {
  program
    .command('leaderboard')
    .description('compare the evaluations of a folder: models by environments, with intervals, tokens and cost')
    .argument('[folder]', 'workspace, or folder of run folders', '.')
    .option('--format <name>', 'text, markdown or csv', formatOf, 'text')
    .option('--out <file>', 'write the result to this file, which is replaced')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .addHelpText(
      'after',
      `
Evaluations share a table only if they played the same episodes: equal environments and versions, seeds, numbers of episodes,
turn protocol and sampling. Further tables name the settings in which they differ from the first.
Output with --json: [{"tags", "differences", "rows": [{"run", "model", "success", "overall", "tokens", "cost", …}]}].`,
    )
    .action((folder: string, flags: LeaderboardFlags) => answer(flags, async () => leaderboard(folder, flags)));
}

function leaderboard(folder: string, { format, out }: LeaderboardFlags): Answer {
  const { runs, notes } = evaluationsIn(resolve(folder));
  for (const note of notes) process.stderr.write(`${printable(note)}\n`);
  if (runs.length === 0)
    throw new UserError(
      `leaderboard: ${resolve(folder)} contains no finished evaluation: run ragen eval there, or give a folder of run folders`,
    );
  const tables = leaderboardOf(runs);
  const text = { text: plainTables, markdown: leaderboardMarkdown, csv: leaderboardCsv }[format](tables);
  if (out === undefined) return { document: tables, plainText: text.trimEnd() };
  const file = resolve(out);
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UserError(`leaderboard: ${file} cannot be written (${(error as Error).message}): give another --out`);
  }
  return { document: tables, plainText: file };
}

/** Returns the finished evaluations among the runs of a workspace or among the subfolders of a folder. */
function evaluationsIn(folder: string): { runs: EvaluatedRun[]; notes: string[] } {
  const runs: EvaluatedRun[] = [];
  const notes: string[] = [];
  const parent = hasEntrySync(folder, runsFolder) ? join(folder, runsFolder) : folder;
  let names: string[];
  try {
    names = parent === folder ? readdirSync(folder) : runNamesSync(parent);
  } catch (error) {
    throw new UserError(`leaderboard: ${folder} cannot be read (${(error as Error).message}): give another folder`);
  }
  for (const name of names.sort()) {
    const path = join(parent, name);
    if (!hasRunFile(path, runFiles.evaluation) || !hasRunFile(path, runFiles.manifest)) continue;
    try {
      const run = RunFolder.open(path);
      const { name: label = run.manifest.name } = run.readLabels();
      const text = readRunFileSync(path, runFiles.evaluation).toString('utf8');
      runs.push({ manifest: run.manifest, name: label, evaluation: evaluationSchema.parse(JSON.parse(text)) });
    } catch (error) {
      notes.push(`${basename(path)} is left out: ${(error as Error).message.split('\n', 1)[0]}`);
    }
  }
  return { runs, notes };
}

function plainTables(tables: readonly LeaderboardTable[]): string {
  return `${tables
    .map(table => {
      const { heads, rows } = leaderboardTexts(table);
      const lines = [heads, ...rows].map(cells => cells.map(printable));
      const widths = heads.map((_, column) => maximum(lines.map(cells => cells[column].length)));
      const text = lines.map(cells =>
        cells
          .map((cell, column) => cell.padEnd(widths[column]))
          .join('  ')
          .trimEnd(),
      );
      const above = differenceText(table);
      return [...(above === '' ? [] : [printable(above)]), ...text].join('\n');
    })
    .join('\n\n')}\n`;
}
