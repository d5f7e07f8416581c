// `ragen report RUNS…`: writes a report of one or several runs, as one HTML file or as Markdown with SVG files, or prints
// the text of a plug-in about the runs.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { ReportedRunData } from '../../../envs/api/plugins/report';
import { UserError } from '../../common/user-error';
import { paperTheme, reportMarkdown } from '../../run-data/report/report-markdown';
import { reportOf } from '../../run-data/report/report';
import type { ReportedRun } from '../../run-data/report/reported-run';
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
  with?: string;
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
    .option('--with <file>', 'print the text of a plug-in about the runs instead of writing a report')
    .option('--force', 'replace an existing file')
    .addHelpText(
      'after',
      `
The report contains results, differences of the configurations, charts, the interpretation of the reasoning, episodes,
events, environments and machines. The HTML file loads nothing and prints on A4.
Output with --json: {"file", "runs", "pictures"}; with --with, {"runs", "text"}.`,
    )
    .action((runs: string[], flags: ReportFlags) =>
      answer(flags, async () => (flags.with === undefined ? report(runs, flags) : withPlugin(flags.with, runs, flags))),
    );
}

async function report(ids: readonly string[], flags: ReportFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folders = [...new Set(ids)].map(id => RunFolder.find(workspace, id));
  const ending = flags.format === 'html' ? '.html' : '.md';
  const file = resolve(
    workspace,
    flags.out ?? `${folders.length === 1 ? `${folders[0].id}-report` : 'report'}${ending}`,
  );
  const choice = flags.episode ?? (flags.episodes ? 'picked' : 'none');
  const document = (runs: readonly ReportedRun[], pictures: number): Answer => ({
    document: { file, runs: runs.map(({ manifest }) => manifest.id), pictures },
    plainText: file,
  });
  if (flags.format === 'markdown') {
    const runs = await reportedRuns(folders, choice);
    return document(runs, writeMarkdown(file, runs, flags));
  }
  const { html, runs } = await htmlReport(folders, choice);
  write(file, html, flags.force);
  return document(runs, 0);
}

/** Prints the text of a plug-in about runs. */
async function withPlugin(file: string, ids: readonly string[], flags: ReportFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const folders = [...new Set(ids)].map(id => RunFolder.find(workspace, id));
  const runs = await reportedRuns(folders, 'none');
  const text = await ownReport(file, workspace, runs.map(reportedData));
  return { document: { runs: runs.map(({ manifest }) => manifest.id), text }, plainText: text };
}

const reportedData = ({ manifest, name, status, metrics, events }: ReportedRun): ReportedRunData => ({
  ...{ id: manifest.id, name, state: status?.state ?? null, config: manifest.config, metrics },
  events: events.map(({ step, kind, message }) => ({ step, kind, message })),
});

function writeMarkdown(file: string, runs: readonly ReportedRun[], { force }: ReportFlags): number {
  const folder = `${basename(file, extname(file))}-figures`;
  const { text, pictures } = reportMarkdown(reportOf(runs, paperTheme), folder, reportFooter());
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
