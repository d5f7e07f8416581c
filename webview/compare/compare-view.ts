// Renders the comparison: a bar, the table of results, and the charts in sections.
import type { CompareActions } from './actions';
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { notice, skeleton } from '../components/notice';
import { chartSections } from './chart-sections';
import type { ChartTools } from './compare-chart';
import { compareTable } from './compare-table';
import { tableMetric, type ComparedLook, type CompareState } from './state';
import { topBar } from './top-bar';

export function compareView(
  state: CompareState,
  look: ComparedLook | null,
  actions: CompareActions,
  tools: ChartTools,
): TemplateResult {
  const { connection, compared } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The runs could not be read or changed',
      text: connection.failed,
      action: { label: 'Try again', run: actions.load },
    });
  if (!compared || !look) return skeleton('skeleton-charts', 8, 'Loading the runs');
  return html`${topBar(compared, state, actions)}
    <div class="table-scroll" tabindex="0" role="region" aria-label="Results by configuration"
      >${tableView(state, actions)}</div
    >
    ${chartSections(look, state, actions, tools)}`;
}

function tableView(state: CompareState, actions: CompareActions): unknown {
  const { compared, columns, theme, settings } = state;
  const metric = tableMetric(state);
  if (!compared || !metric) return nothing;
  const curves = columns.get(metric.key);
  const { hidden, baseline } = settings;
  return guard([compared, metric, curves, theme, hidden, baseline], () =>
    compareTable(compared, metric, curves, settings, actions),
  );
}
