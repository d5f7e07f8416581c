// `ragen report RUNS…`: asks a report, the built-in summary or a plug-in, about one or several runs. Its document is written
// as one HTML file or as Markdown with SVG files; its text is printed.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { ReportDocument } from '../../../envs/api/plugins/report';
import { UserError } from '../../common/user-error';
import { drawnReport } from '../../run-data/report/drawn-report';
import { paperTheme, reportMarkdown } from '../../run-data/report/report-markdown';
import type { ReportedRun } from '../../run-data/report/reported-run';
import { builtInReports } from '../../run-data/report/summary-report';
import { ownReport } from '../../trainer/plugins/plugin-report';
import { RunFolder } from '../../trainer/store/run-folder';
import { withCommon, type CommonFlags } from '../options/run-options';
import type { Parse } from '../options/model-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { htmlReport, reportFooter } from './html-report';
import { reportedRuns } from './reported-runs';

type Format = 'html' | 'markdown';

interface ReportFlags extends CommonFlags {
  out?: string;
  format: Format;
  episode?: string[];
  episodes: boolean;
  with: string;
  force?: boolean;
}

const formatOf: Parse<Format> = text => {
  if (text === 'html' || text === 'markdown') return text;
  throw new UserError(`--format is ${JSON.stringify(text)}: use one of html, markdown`);
};

const collected = (id: string, before: string[] = []): string[] => [...before, id];

export function addReport(program: Command): void {
  withCommon(program.command('report').description('write a report of one or several runs as a file'))
    .argument('<runs...>', 'ids of the runs')
    .option('--out <file>', 'file to write (default: <run>-report.html, or report.html for several runs)')
    .option('--format <name>', 'html (one file) or markdown (a file, and a folder of SVG files)', formatOf, 'html')
    .option('--episode <id>', 'show this episode instead of the best, worst and most changed; repeatable', collected)
    .option('--no-episodes', 'show no episodes')
    .option('--with <report>', 'the built-in report (summary), or the path of a plug-in', 'summary')
    .option('--force', 'replace an existing file')
    .addHelpText(
      'after',
      `
The summary contains results, differences of the configurations, charts, the interpretation of the reasoning, episodes,
events, environments and machines. The HTML file loads nothing and prints on A4. A plug-in may return a text instead,
which is printed.
Output with --json: {"file", "runs", "pictures"}, or {"runs", "text"} for a text.`,
    )
    .action((runs: string[], flags: ReportFlags) => answer(flags, () => report(runs, flags)));
}

async function report(ids: readonly string[], flags: ReportFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folders = [...new Set(ids)].map(id => RunFolder.find(workspace, id));
  const runs = await reportedRuns(folders, flags.episode ?? (flags.episodes ? 'picked' : 'none'));
  const reported = Object.hasOwn(builtInReports, flags.with)
    ? builtInReports[flags.with].report(runs)
    : await ownReport(flags.with, workspace, runs);
  const named = { runs: runs.map(({ id }) => id) };
  if (typeof reported === 'string') return { document: { ...named, text: reported }, plainText: reported };
  const ending = flags.format === 'html' ? '.html' : '.md';
  const file = resolve(
    workspace,
    flags.out ?? `${folders.length === 1 ? `${folders[0].id}-report` : 'report'}${ending}`,
  );
  let pictures = 0;
  if (flags.format === 'markdown') pictures = writeMarkdown(file, reported, runs, flags);
  else write(file, htmlReport(reported, runs), flags.force);
  return { document: { file, ...named, pictures }, plainText: file };
}

function writeMarkdown(
  file: string,
  document: ReportDocument,
  runs: readonly ReportedRun[],
  { force }: ReportFlags,
): number {
  const folder = `${basename(file, extname(file))}-figures`;
  const { text, pictures } = reportMarkdown(drawnReport(document, runs, paperTheme), folder, reportFooter());
  write(file, text, force);
  const target = join(dirname(file), folder);
  if (force) rmSync(target, { recursive: true, force: true });
  try {
    mkdirSync(target);
  } catch (error) {
    rmSync(file, { force: true });
    throw cannotWrite(target, error as NodeJS.ErrnoException);
  }
  for (const [name, content] of pictures)
    write(
      join(dirname(file), name),
      typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'),
      force,
    );
  return pictures.size;
}

function write(file: string, content: string | Uint8Array, force = false): void {
  try {
    writeFileSync(file, content, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw cannotWrite(file, error as NodeJS.ErrnoException);
  }
}

const cannotWrite = (path: string, { code, message }: NodeJS.ErrnoException): UserError =>
  new UserError(
    code === 'EEXIST'
      ? `report: ${path} already exists: give another --out, or --force to replace it`
      : `report: ${path} cannot be written (${message}): give another --out`,
  );
