// Renders the run table: the bar, the list of all columns if it is open, and the rows.
import { html, nothing, type TemplateResult } from 'lit';
import { notice, skeleton } from '../components/notice';
import type { RunTableActions } from './actions';
import { columnChooser } from './column-chooser';
import { listingOf } from './listing';
import { rowsView } from './rows-view';
import type { RunTableState } from './state';
import { topBar } from './top-bar';

export function runTableView(state: RunTableState, actions: RunTableActions): TemplateResult {
  const { connection, runs, chooser } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The runs could not be read',
      text: connection.failed,
      action: { label: 'Try again', run: actions.load },
    });
  if (connection === 'connecting' && runs.length === 0) return skeleton('skeleton-rows', 12, 'Loading the runs');
  return html`${topBar(state, actions)}${chooser ? columnChooser(state, chooser, actions) : nothing}${content(
    state,
    actions,
  )}`;
}

function content(state: RunTableState, actions: RunTableActions): TemplateResult {
  const { runs, total } = listingOf(state);
  if (runs.length > 0) return rowsView(state, actions);
  if (state.runs.length === 0)
    return notice({
      kind: 'empty',
      title: 'No run in this workspace yet',
      text: 'Start a run in the Runs view. It then appears here.',
    });
  if (total === 0)
    return notice({
      kind: 'empty',
      title: 'All runs are archived',
      text: 'Show archived runs to list them here.',
      action: { label: 'Show archived runs', run: () => actions.showArchived(true) },
    });
  return notice({
    kind: 'empty',
    title: 'No matching runs',
    text: `None of ${total} runs matches “${state.settings.layout.filter}”.`,
    action: { label: 'Clear filter', run: () => actions.filter('') },
  });
}
