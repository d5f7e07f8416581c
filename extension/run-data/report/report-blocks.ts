// The content of a report, independent of its format: the blocks of a report (envs/api/plugins/report.ts) with drawn charts
// and episodes, which report-html.ts and report-markdown.ts render. All texts are plain text; the renderers escape them.
import type { ReportTextBlock } from '../../../envs/api/plugins/report';
import type { Board } from '../../common/board';
import type { PlotData } from '../charts/plot-data';

/** A block as the renderers take it: its charts are drawn, and its episode is read. */
export type DrawnBlock =
  ReportTextBlock | { readonly kind: 'charts'; readonly charts: readonly ReportChart[] } | ReportEpisode;

export interface ReportChart {
  /** Unique in the report: letters, digits and hyphens. */
  readonly id: string;
  /** What the chart shows: the keys of its metrics. */
  readonly caption: string;
  readonly data: PlotData;
}

export interface ReportEpisode {
  readonly kind: 'episode';
  /** Unique in the report, as `ReportChart.id`. */
  readonly id: string;
  readonly title: string;
  readonly summary: string;
  readonly turns: readonly ReportTurn[];
  /** State after the last turn; null if it is not stored, as in runs of most other trainers. */
  readonly end: ReportState | null;
  /** Why the episode ended early; null if it did not. */
  readonly problem: string | null;
}

export interface ReportTurn {
  readonly title: string;
  readonly state: ReportState;
  readonly answer: string;
  /** Executed actions and reward, in one line. */
  readonly outcome: string;
}

/** A state: a board with the texts around it or, if no game was recognised, only a text. */
export interface ReportState {
  readonly text: string;
  readonly board: { readonly board: Board; readonly previous: Board | null } | null;
  /** Pictures as data URLs of PNG or JPEG files; null for a missing one. */
  readonly pictures: readonly (string | null)[];
}

/** A drawn report: the blocks below its title. */
export interface DrawnReport {
  readonly title: string;
  readonly blocks: readonly DrawnBlock[];
}
