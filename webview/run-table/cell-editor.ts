// Editor of a run's tags or notes, in the place of the cell. Enter stores tags, Ctrl+Enter stores notes; leaving the
// editor stores the text, Escape discards it.
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { RunTableActions } from './actions';
import type { Editing } from './state';

export function cellEditor(run: RunSummary, { field, before }: Editing, actions: RunTableActions): TemplateResult {
  const valueOf = (event: Event): string => (event.currentTarget as HTMLInputElement).value;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (field === 'tags' || event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      actions.endEdit(valueOf(event));
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      actions.endEdit(null);
    }
  };
  const onLeave = (event: Event): void => actions.endEdit(valueOf(event));
  if (before === null) return html`<td class="text muted">reading the notes</td>`;
  const label = `${field === 'tags' ? 'Tags' : 'Notes'} of ${run.name}`;
  return html`<td class="text editing"
    >${
      field === 'tags'
        ? html`<input
            class="cell-editor"
            aria-label=${label}
            placeholder="tag, tag"
            .value=${before}
            @keydown=${onKey}
            @blur=${onLeave}
          />`
        : html`<textarea
            class="cell-editor"
            rows="5"
            aria-label=${label}
            title="Ctrl+Enter saves, Escape cancels"
            .value=${before}
            @keydown=${onKey}
            @blur=${onLeave}
          ></textarea>`
    }</td
  >`;
}
