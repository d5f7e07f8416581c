// The bar of the Compare page: the compared runs, search, smoothing, and the choice of the table's metric.
import { html, type TemplateResult } from 'lit';
import { dropdown, textField } from '../components/controls';
import { smoothingSlider } from '../components/toolbar';
import { counted } from '../shared/format';
import type { CompareActions } from './actions';
import type { Compared } from './compared-metrics';
import { tableMetric, type CompareState } from './state';

export function topBar(
  { metrics, groups, snapshot }: Compared,
  state: CompareState,
  actions: CompareActions,
): TemplateResult {
  const choices = metrics.filter(({ section }) => section === 'task').map(({ key, title }) => [key, title] as const);
  return html`<header class="top-bar">
    <div class="top-row"><h1>${snapshot.runs.length} runs of ${counted(groups.length, 'configuration')}</h1></div>
    <div class="top-row controls">
      ${textField({
        label: 'Search metrics',
        placeholder: 'Search metrics',
        class: 'search',
        value: state.search,
        onInput: actions.search,
      })}
      ${smoothingSlider({ value: state.settings.smoothing, onChange: actions.smooth })}
      <span
        >${dropdown({
          label: 'Metric of the table',
          choices,
          value: tableMetric(state)?.key ?? '',
          onChange: actions.chooseMetric,
        })}</span
      >
    </div>
  </header>`;
}
