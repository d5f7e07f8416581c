// User actions of the run table, called by the views.
import type { RunTableAction, RunTableLayout } from '../../extension/protocol/run-table-page';
import type { RunColour } from '../../extension/run-data/run-colour';
import type { Cell } from '../../extension/run-data/table-columns';
import type { Editing, RunTableState, Viewport } from './state';

export interface RunTableActions {
  load(): void;
  filter(line: string): void;
  /** Sorts by a column, or changes its direction; with `add`, in addition to other columns. */
  sort(by: string, add: boolean): void;
  setSort(sort: readonly string[]): void;
  group(by: string | null): void;
  fold(value: Cell): void;
  showColumn(id: string, isShown: boolean): void;
  moveColumn(id: string, by: -1 | 1): void;
  showArchived(isShown: boolean): void;
  choose(chooser: RunTableState['chooser']): void;
  see(viewport: Viewport): void;
  select(folder: string, isSelected: boolean, range: boolean): void;
  selectAll(isSelected: boolean): void;
  /** Begins to edit a cell. */
  edit(folder: string, field: Editing['field']): void;
  /** Stores the edited text, or discards it if the text is null. */
  endEdit(text: string | null): void;
  /** Sets the colour of a run on all pages; null restores its own colour. */
  recolour(folder: string, colour: RunColour | null): void;
  act(action: RunTableAction, folders: readonly string[]): void;
  apply(layout: RunTableLayout, view: string | null): void;
  /** Saves the layout as a view; null asks for a name. */
  saveView(name: string | null): void;
  deleteView(name: string): void;
  exportCsv(): void;
}
