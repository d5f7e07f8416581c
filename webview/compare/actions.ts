// User actions of the Compare page, called by the views.

import type { RunColour } from '../../extension/run-data/run-colour';
import type { CompareAxis } from '../../extension/run-data/charts/run-axis';
import type { CompareSettings } from './state';

export interface CompareActions {
  load(): void;
  search(text: string): void;
  smooth(smoothing: number): void;
  chooseMetric(key: string): void;
  chooseAxis(axis: CompareAxis): void;
  /** Shows a part of the x axis in all charts; null shows all of it. */
  show(zoom: CompareSettings['zoom']): void;
  /** Turns the logarithmic scale of a chart on or off, or enlarges or shrinks the chart. */
  toggle(key: string, setting: 'log' | 'enlarged'): void;
  /** Shows or hides runs, by id. */
  hide(runs: readonly string[], isHidden: boolean): void;
  /** Sets the colour of runs, by folder, on all pages; null restores their own colours. */
  recolour(folders: readonly string[], colour: RunColour | null): void;
  /** Makes a group the baseline; null removes the baseline. */
  chooseBaseline(group: string | null): void;
  /** Whether charts show differences from the baseline. */
  showDifferences(differences: boolean): void;
  unfold(section: string, isOpen: boolean): void;
  openDashboard(folder: string): void;
  openDifference(folders: [string, string]): void;
}
