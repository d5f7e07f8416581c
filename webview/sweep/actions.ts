// What the user can do on the Sweep page; page.ts implements it.
import type { SweepSettings } from './state';

export interface SweepPageActions {
  load(): void;
  control(action: 'continue' | 'stop'): void;
  chooseMetric(key: string): void;
  choose(part: Partial<Omit<SweepSettings, 'metric'>>): void;
  openDashboard(folder: string): void;
  openComparison(): void;
  openFile(): void;
}
