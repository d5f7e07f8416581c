// User actions of the Dashboard page, called by the views.
import type { DashboardCommandName } from '../../extension/protocol/dashboard-page';
import type { ChartActions } from './charts/chart-element';
import type { DashboardSettings } from './dashboard-settings';

export interface DashboardActions extends ChartActions {
  connect(): void;
  command(command: DashboardCommand): void;
  change(part: Partial<DashboardSettings>): void;
  fold(group: string): void;
  search(text: string): void;
  /** Exports the visible rows of the displayed metrics to a CSV file. */
  exportShown(): void;
  /** Opens an episode on the Episodes page. */
  openEpisode(id: string): void;
  /** Hides the banner of the run's end. */
  closeEnding(): void;
  /** Hides the error message of a failed export. */
  dismiss(): void;
}

export type DashboardCommand = DashboardCommandName;
