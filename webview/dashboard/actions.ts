// What a user can do on the Dashboard page; the views call it.
import type { ChartActions } from './chart-element';
import type { DashboardSettings } from './settings';

/** What the user can do on the page. */
export interface DashboardActions extends ChartActions {
  connect(): void;
  command(command: DashboardCommand): void;
  change(part: Partial<DashboardSettings>): void;
  fold(group: string): void;
  search(text: string): void;
  /** Exports the displayed metrics to a file. */
  exportShown(): void;
  /** Removes the message of a failed export. */
  dismiss(): void;
}

export type DashboardCommand = 'pause' | 'resume' | 'stop' | 'settings' | 'episodes' | 'collapse' | 'log';
