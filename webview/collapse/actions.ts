// User actions of the Collapse page, called by the views.
import type { Cell } from './step/matrix';
import type { GroupCell } from './step/group-cell';
import type { FamilyName } from '../../extension/run-data/interpretation/run-series';
import type { Anchor } from '../../extension/run-data/interpretation/warning-signs';

export interface CollapseActions {
  load(): void;
  command(command: 'dashboard' | 'episodes' | 'diagnose'): void;
  openEpisode(id: string): void;
  explain(anchor: Anchor): void;
  copy(text: string): void;
  go(step: number): void;
  /** Selects a step and stops playback. With null, the page follows the newest step. */
  scrub(step: number | null): void;
  /** Selects the previous or the next diagnosis. */
  move(by: -1 | 1): void;
  togglePlay(): void;
  chooseFamily(family: FamilyName): void;
  selectCell(cell: Cell): void;
  /** Opens the episode of the selected cell. */
  openCell(): void;
  openTable(open: boolean): void;
  /** Moves the tab stop to another score cell in the table of prompt groups. */
  stopAt(cell: GroupCell): void;
  chooseAnalysis(name: string): void;
}
