// Draws the charts and reads the episodes that the blocks of a report name, so that the renderers need no runs. A chart that
// no run has values for is left out.
import type { ReportBlock, ReportDocument } from '../../../envs/api/plugins/report';
import type { Theme } from '../charts/chart-theme';
import { withDashes, type DrawnGroup } from '../charts/comparison';
import { colourOfRun } from '../run-colour';
import type { DrawnBlock, DrawnReport, ReportChart } from './report-blocks';
import { chartsNamed, type DrawnRun } from './report-charts';
import { reportEpisode } from './report-episodes';
import { reportGroups } from './report-groups';
import { ReportSeries, type ReportedRun } from './reported-run';

/** Returns a report about `reported` with charts in the colours of `theme`. Its episodes must be those of the runs. */
export function drawnReport(
  { title, blocks }: ReportDocument,
  reported: readonly ReportedRun[],
  theme: Theme,
): DrawnReport {
  const runs = reported.map((run): DrawnRun => ({ run, series: new ReportSeries(run.metrics) }));
  const groups = withDashes(
    reportGroups(reported).groups.map((group): DrawnGroup => {
      const { manifest, colour } = reported[group.members[0]];
      return { ...group, colour: colourOfRun({ id: manifest.id, colour }), dash: 0 };
    }),
  );
  let [charts, episodes] = [0, 0];
  const draw = (block: ReportBlock): DrawnBlock[] => {
    if (block.kind === 'episode') {
      const { run, episode } = block;
      return [reportEpisode(reported[run].episodes[episode], `episode-${++episodes}`)];
    }
    if (block.kind !== 'charts') return [block];
    const named = chartsNamed(block.charts, runs, groups, theme);
    const drawn = named.map((chart): ReportChart => ({ id: `chart-${++charts}`, ...chart }));
    return drawn.length > 0 ? [{ kind: 'charts', charts: drawn }] : [];
  };
  return { title, blocks: blocks.flatMap(draw) };
}
