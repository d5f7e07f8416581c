// What a user can do on the Collapse page; the views call it.
import type { Cell } from './matrix';
import type { GroupCell } from './group-cell';
import type { FamilyName } from './run-series';
import type { Anchor } from './signs';

/** What the user can do on the page. */
export interface CollapseActions {
  load(): void;
  command(command: 'dashboard' | 'episodes'): void;
  openEpisode(id: string): void;
  explain(anchor: Anchor): void;
  copy(text: string): void;
  go(step: number): void;
  /** Selects a step by hand, which ends playing; null follows the newest. */
  scrub(step: number | null): void;
  /** To the previous or next diagnosis. */
  move(by: -1 | 1): void;
  togglePlay(): void;
  chooseFamily(family: FamilyName): void;
  selectCell(cell: Cell): void;
  /** Opens the episode of the selected cell. */
  openCell(): void;
  openTable(open: boolean): void;
  /** Moves the tab stop among the scores. */
  stopAt(cell: GroupCell): void;
  chooseAnalysis(name: string): void;
}
