// What a user can do on the Compare page; the views call it.

/** What the user can do on the page. */
export interface CompareActions {
  load(): void;
  search(text: string): void;
  smooth(smoothing: number): void;
  chooseMetric(key: string): void;
  unfold(section: string, isOpen: boolean): void;
  openDashboard(folder: string): void;
  openDifference(folders: [string, string]): void;
}
