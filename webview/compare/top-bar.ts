// The bar of the Compare page: the compared runs, search, smoothing, and the choice of the table's metric.
import { html, type TemplateResult } from 'lit';
import { button, dropdown, textField } from '../components/controls';
import { smoothingSlider } from '../components/toolbar';
import { counted } from '../shared/format';
import type { CompareActions } from './actions';
import type { Compared } from './compared-metrics';
import { axesOf, tableMetric, type CompareState } from './state';

const axisChoices = [
  ['step', 'by step'],
  ['tokens', 'by tokens'],
  ['time', 'by time'],
] as const;

export function topBar(compared: Compared, state: CompareState, actions: CompareActions): TemplateResult {
  const { metrics, groups, snapshot } = compared;
  const { axis, hidden, zoom, baseline, differences } = state.settings;
  const axes = axesOf(compared);
  const base = groups.find(({ id }) => id === baseline);
  const gone = snapshot.runs.filter(({ run }) => hidden.includes(run.id)).map(({ run }) => run.id);
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
      ${dropdown({
        label: 'X axis',
        choices: axisChoices,
        value: axis,
        disabled: axisChoices.map(([each]) => each).filter(each => !axes.includes(each)),
        onChange: actions.chooseAxis,
      })}
      <span
        >${dropdown({
          label: 'Metric of the table',
          choices,
          value: tableMetric(state)?.key ?? '',
          onChange: actions.chooseMetric,
        })}</span
      >
      ${button({
        label: 'Differences',
        title: base ? `Differences from ${base.label}` : '',
        pressed: differences,
        hidden: !base,
        onClick: () => actions.showDifferences(!differences),
      })}
      ${button({
        label: `Show ${counted(gone.length, 'hidden run')}`,
        hidden: gone.length === 0,
        onClick: () => actions.hide(gone, false),
      })}
      ${button({
        label: axis === 'step' ? 'All steps' : 'Whole axis',
        title: 'Show the whole x axis again ( 0 )',
        hidden: zoom === null,
        onClick: () => actions.show(null),
      })}
    </div>
  </header>`;
}
