// The HTML report of run folders, with the program's script and version.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installation } from '../../node/installation';
import { reportOf } from '../../run-data/report/report';
import { htmlTheme, reportHtml } from '../../run-data/report/report-html';
import type { ReportedRun } from '../../run-data/report/reported-run';
import type { RunFolder } from '../../trainer/store/run-folder';
import { reportedRuns, type EpisodeChoice } from './reported-runs';

/** Returns the report of runs as HTML, and the runs. */
export async function htmlReport(
  folders: readonly RunFolder[],
  choice: EpisodeChoice,
): Promise<{ html: string; runs: ReportedRun[] }> {
  const runs = await reportedRuns(folders, choice);
  const script = readFileSync(join(installation.root, 'dist', 'pages', 'report.js'), 'utf8');
  const html = reportHtml(reportOf(runs, htmlTheme), {
    script: script.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, ''),
    footer: reportFooter(),
    sha256: text => createHash('sha256').update(text).digest('base64'),
  });
  return { html, runs };
}

/** Returns the last line of a report: the program, its version, and the time. */
export function reportFooter(): string {
  const { version } = JSON.parse(readFileSync(join(installation.root, 'package.json'), 'utf8')) as { version: string };
  return `Written by RAGEN Workbench ${version} on ${new Date().toISOString()}`;
}
