// User actions of the Compare page, called by the views.

export interface CompareActions {
  load(): void;
  search(text: string): void;
  smooth(smoothing: number): void;
  chooseMetric(key: string): void;
  unfold(section: string, isOpen: boolean): void;
  openDashboard(folder: string): void;
  openDifference(folders: [string, string]): void;
}
