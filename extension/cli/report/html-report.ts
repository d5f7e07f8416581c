// Reports as HTML, with the program's script and version.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportDocument } from '../../../envs/api/plugins/report';
import { installation } from '../../node/installation';
import { drawnReport } from '../../run-data/report/drawn-report';
import { htmlTheme, reportHtml } from '../../run-data/report/report-html';
import type { ReportedRun } from '../../run-data/report/reported-run';

/** Returns a report about runs as HTML. */
export function htmlReport(document: ReportDocument, runs: readonly ReportedRun[]): string {
  const script = readFileSync(join(installation.root, 'dist', 'pages', 'report.js'), 'utf8');
  return reportHtml(drawnReport(document, runs, htmlTheme), {
    script: script.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, ''),
    footer: reportFooter(),
    sha256: text => createHash('sha256').update(text).digest('base64'),
  });
}

/** Returns the last line of a report: the program, its version, and the time. */
export function reportFooter(): string {
  const { version } = JSON.parse(readFileSync(join(installation.root, 'package.json'), 'utf8')) as { version: string };
  return `Written by RAGEN Workbench ${version} on ${new Date().toISOString()}`;
}
