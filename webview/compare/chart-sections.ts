// The charts of the comparison in collapsible sections, below the section of a sweep. During a search, only matching
// charts are shown and all sections are open.
import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { repeat } from 'lit/directives/repeat.js';
import { notice } from '../components/notice';
import './compare-chart';
import './sweep/sweep-section';
import type { ChartTools } from './compare-chart';
import type { CompareActions } from './actions';
import type { ComparedMetric } from './compared-metrics';
import { isSweep } from './sweep/sweep-runs';
import {
  foundMetrics,
  isOpen,
  searchedText,
  sweepId,
  tableMetric,
  type ComparedLook,
  type CompareState,
} from './state';

export function chartSections(
  look: ComparedLook,
  state: CompareState,
  actions: CompareActions,
  tools: ChartTools,
): TemplateResult {
  const metrics = foundMetrics(state);
  const ids = [...new Set(metrics.map(({ section }) => section))];
  const text = searchedText(state);
  const sections = repeat(
    ids,
    id => id,
    id => {
      const own = metrics.filter(({ section }) => section === id);
      const charts = repeat(
        own,
        ({ key }) => key,
        metric => chart(metric, look, state, tools),
      );
      return html`<details
        data-group=${id}
        ?open=${live(isOpen(state, id))}
        @toggle=${({ currentTarget }: Event) => actions.unfold(id, (currentTarget as HTMLDetailsElement).open)}
      >
        <summary class="group-title">${own[0].sectionTitle}</summary>
        <div class="charts">${charts}</div>
      </details>`;
    },
  );
  const none = (): TemplateResult =>
    notice({
      kind: 'empty',
      title: 'No metric to show',
      text: text === '' ? 'None of these runs has finished a step.' : `No metric of these runs matches “${text}”.`,
    });
  return html`<main class="dashboard-body"
    >${text === '' ? sweepView(look, state, actions) : nothing}${ids.length > 0 ? sections : none()}</main
  >`;
}

/** Renders the section of a sweep; nothing if the runs are no sweep. */
function sweepView(look: ComparedLook, state: CompareState, actions: CompareActions): TemplateResult | typeof nothing {
  const { compared, columns, theme } = state;
  const metric = tableMetric(state);
  if (!compared || !metric || !isSweep(compared)) return nothing;
  const open = isOpen(state, sweepId);
  return html`<details
    class="sweep-section"
    data-group=${sweepId}
    ?open=${live(open)}
    @toggle=${({ currentTarget }: Event) => actions.unfold(sweepId, (currentTarget as HTMLDetailsElement).open)}
  >
    <summary class="group-title">Configuration keys and ${metric.title}</summary>
    ${
      open
        ? html`<sweep-section
            .compared=${compared}
            .groups=${look.groups}
            .metric=${metric}
            .curves=${columns.get(metric.key) ?? null}
            .theme=${theme}
            .actions=${actions}
          ></sweep-section>`
        : nothing
    }
  </details>`;
}

const chart = (
  metric: ComparedMetric,
  look: ComparedLook,
  { columns, theme, settings, hovered, onScreen }: CompareState,
  tools: ChartTools,
): TemplateResult =>
  html`<compare-chart
    .tools=${tools}
    .metric=${metric}
    .look=${look}
    .curves=${columns.get(metric.key) ?? null}
    .theme=${theme}
    .smoothing=${settings.smoothing}
    .zoom=${settings.zoom}
    .log=${settings.log.includes(metric.key)}
    .large=${settings.enlarged.includes(metric.key)}
    .hovered=${hovered}
    .isOnScreen=${onScreen.has(metric.key)}
  ></compare-chart>`;
