// Builds the report of one or several runs as blocks. Pure: equal runs give equal reports.
import type { Theme } from '../charts/chart-theme';
import { withDashes, type DrawnGroup } from '../charts/comparison';
import { groupRuns, type ComparedGroup } from '../compared-runs';
import { colourOfRun } from '../run-colour';
import type { Report, ReportBlock, ReportTable } from './report-blocks';
import { diagnosisChartsOf, overviewCharts, type DrawnRun } from './report-charts';
import { reportEpisode } from './report-episodes';
import {
  differenceBlocks,
  environmentTable,
  eventTable,
  machineTable,
  overrideBlocks,
  resultsTable,
  runFacts,
} from './report-facts';
import { reasoningBlocks } from './report-reasoning';
import { ReportSeries, type ReportedRun } from './reported-run';

const heading = (text: string, level: 2 | 3 = 2): ReportBlock => ({ kind: 'heading', level, text });

/** Returns the report of runs, oldest first, with charts in the colours of `theme`. There is at least one run. */
export function reportOf(reported: readonly ReportedRun[], theme: Theme): Report {
  const runs = reported.map((run): DrawnRun => ({ run, series: new ReportSeries(run.metrics) }));
  const { groups, keys } = groupsOf(reported);
  const drawnGroups = withDashes(
    groups.map((group): DrawnGroup & ComparedGroup => {
      const { manifest, colour } = reported[group.members[0]];
      return { ...group, colour: colourOfRun({ id: manifest.id, colour }), dash: 0 };
    }),
  );
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
  const charts = overviewCharts(runs, drawnGroups, theme);
  const diagnosis = diagnosisChartsOf(runs, drawnGroups, theme);
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
        run.episodes.map((chosen, i) => reportEpisode(chosen, `episode-${index + 1}-${i + 1}`)),
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
const filledTable = (title: string, table: ReportTable): ReportBlock[] =>
  table.rows.length > 0 ? [heading(title), table] : [];

const paragraph = (text: string): ReportBlock => ({ kind: 'paragraph', text });

/** Groups runs as Compare does. If labels of groups are equal, the id of the first run follows each of them. */
function groupsOf(runs: readonly ReportedRun[]): ReturnType<typeof groupRuns> {
  const { groups, keys } = groupRuns(runs);
  const isShared = (label: string): boolean => groups.filter(group => group.label === label).length > 1;
  return {
    groups: groups.map(group =>
      isShared(group.label) ? { ...group, label: `${group.label} (${runs[group.members[0]].manifest.id})` } : group,
    ),
    keys,
  };
}
