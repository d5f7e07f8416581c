// The built-in report: results, differences of the configurations, charts, reasoning, episodes, events, notes, environments
// and machines, in the interface that plug-ins implement. Pure: equal runs give equal reports.
import {
  defineReport,
  type ReportBlock,
  type ReportDocument,
  type ReportPlugin,
  type ReportTable,
  type ReportTextBlock,
} from '../../../envs/api/plugins/report';
import { diagnosisChartsOf, overviewCharts, type DrawnRun } from './report-charts';
import {
  differenceBlocks,
  environmentTable,
  eventTable,
  machineTable,
  overrideBlocks,
  resultsTable,
  runFacts,
} from './report-facts';
import { reportGroups } from './report-groups';
import { reasoningBlocks } from './report-reasoning';
import { ReportSeries, type ReportedRun } from './reported-run';

/** The built-in reports by name. */
export const builtInReports: Readonly<Record<string, ReportPlugin>> = {
  summary: defineReport({ name: 'summary', report: summaryOf }),
};

const heading = (text: string, level: 2 | 3 = 2): ReportTextBlock => ({ kind: 'heading', level, text });

/** Returns the summary of runs, oldest first. */
export function summaryOf(reported: readonly ReportedRun[]): ReportDocument {
  const runs = reported.map((run): DrawnRun => ({ run, series: new ReportSeries(run.metrics) }));
  const { groups, keys } = reportGroups(reported);
  const single = runs.length === 1;
  const ofEach = (title: string, blocks: (run: DrawnRun, index: number) => ReportBlock[]): ReportBlock[] => {
    const parts = runs.map((run, i) => ({ name: run.run.name, blocks: blocks(run, i) }));
    const filled = parts.filter(part => part.blocks.length > 0);
    if (filled.length === 0) return [];
    return [
      heading(title),
      ...filled.flatMap(part => (single ? part.blocks : [heading(part.name, 3), ...part.blocks])),
    ];
  };
  const charts = overviewCharts(runs);
  const diagnosis = diagnosisChartsOf(runs);
  const reasoning = ofEach('Reasoning', run => reasoningBlocks(run));
  return {
    title: single ? reported[0].name : `${runs.length} runs: ${groups.map(({ label }) => label).join(', ')}`,
    blocks: [
      ...(single
        ? [runFacts(runs[0])]
        : [
            heading('Results'),
            resultsTable(runs, groups),
            paragraph('Mean over seeds; with three seeds or more, ± half of the 95 % interval (Student’s t).'),
          ]),
      heading(single ? 'Configuration' : 'Differences of the configurations'),
      ...(single ? overrideBlocks(reported[0]) : differenceBlocks(groups, keys)),
      ...(charts.length > 0 ? [heading('Charts'), { kind: 'charts', charts } as const] : []),
      ...reasoning,
      ...(diagnosis.length > 0 ? [{ kind: 'charts', charts: diagnosis } as const] : []),
      ...ofEach('Episodes', ({ run }, index) =>
        run.episodes.map((_, episode) => ({ kind: 'episode', run: index, episode })),
      ),
      ...ofEach('Events', ({ run }) => [eventTable(run)].filter(table => table !== null)),
      ...ofEach('Notes', ({ run }) =>
        run.notes.split(/\n{2,}/).flatMap(text => (text.trim() === '' ? [] : paragraph(text))),
      ),
      ...filledTable('Environments', environmentTable(runs)),
      ...filledTable('Machine and versions', machineTable(runs)),
      ...(single ? [] : ofEach('Runs', run => [runFacts(run)])),
    ],
  };
}

/** Returns a table under its heading; nothing without rows, because other trainers store neither. */
const filledTable = (title: string, table: ReportTable): ReportTextBlock[] =>
  table.rows.length > 0 ? [heading(title), table] : [];

const paragraph = (text: string): ReportTextBlock => ({ kind: 'paragraph', text });
