// The list of all possible columns, with a search: fields of a run, configuration keys (those that differ between runs
// first), and metrics with their last value, best value, and value at a step.
import { html, nothing, type TemplateResult } from 'lit';
import { columnId, tableFields } from '../../extension/run-data/table-columns';
import { button, textField } from '../components/controls';
import type { RunTableActions } from './actions';
import { headOf } from './cells';
import { shownColumns, type RunTableState } from './state';

/** Number of keys listed at a time; a search finds the others. */
const most = 60;

export function columnChooser(
  state: RunTableState,
  chooser: NonNullable<RunTableState['chooser']>,
  actions: RunTableActions,
): TemplateResult {
  const shown = new Set(shownColumns(state));
  const { search, step } = chooser;
  const text = search.trim().toLowerCase();
  const found = (keys: readonly string[]): string[] => keys.filter(key => key.toLowerCase().includes(text));
  const toggle = (id: string, label: string): TemplateResult =>
    html`<button
      class="choice"
      type="button"
      aria-pressed=${String(shown.has(id))}
      @click=${() => actions.showColumn(id, !shown.has(id))}
      >${label}</button
    >`;
  const fields = tableFields.filter(
    field => field !== 'name' && headOf({ kind: 'field', field }, {}).title.toLowerCase().includes(text),
  );
  const config = found([...state.variedKeys, ...state.configKeys.filter(key => !state.variedKeys.includes(key))]);
  const metrics = found(state.metricKeys);
  const varied = new Set(state.variedKeys);
  const more = (count: number): TemplateResult | typeof nothing =>
    count > most ? html`<li class="muted">${count - most} more: search to find them</li>` : nothing;
  return html`<section class="chooser" aria-label="Columns">
    <div class="bar-row">
      ${textField({
        label: 'Search columns',
        placeholder: 'Search metrics and configuration keys',
        class: 'search',
        value: search,
        onInput: value => actions.choose({ ...chooser, search: value }),
      })}
      <label class="step-of"
        >at step
        <input
          type="number"
          min="0"
          .value=${String(step)}
          @input=${({ target }: Event) => {
            const value = Number((target as HTMLInputElement).value);
            if (Number.isInteger(value) && value >= 0 && value < 1e9) actions.choose({ ...chooser, step: value });
          }}
      /></label>
      ${button({ label: 'Close', onClick: () => actions.choose(null) })}
    </div>
    <div class="choosers">
      <div>
        <h3>Run</h3>
        <div class="choices">${fields.map(field => toggle(field, headOf({ kind: 'field', field }, {}).title))}</div>
        <h3>Configuration</h3>
        <ul>
          ${config
            .slice(0, most)
            .map(
              key =>
                html`<li
                  >${toggle(columnId({ kind: 'config', key }), key)}${
                    varied.has(key) ? html`<span class="muted">differs</span>` : nothing
                  }</li
                >`,
            )}${more(config.length)}
        </ul>
      </div>
      <div>
        <h3>Metrics</h3>
        <ul>
          ${metrics
            .slice(0, most)
            .map(
              key =>
                html`<li
                  ><span class="metric-key" title=${headOf({ kind: 'metric', key, at: 'last' }, state.meanings).hint}
                    >${key}</span
                  ><span class="choices"
                    >${toggle(columnId({ kind: 'metric', key, at: 'last' }), 'last')}${toggle(
                      columnId({ kind: 'metric', key, at: 'best' }),
                      'best',
                    )}${toggle(columnId({ kind: 'metric', key, at: step }), `step ${step}`)}</span
                  ></li
                >`,
            )}${more(metrics.length)}
        </ul>
      </div>
    </div>
  </section>`;
}
