// The section of a sweep on the Compare page: which configuration keys explain the table's metric, and parallel
// coordinates of the runs. Shown if at least three configurations differ in some key. The element computes the sweep
// only after the runs, the metric or its values have changed.
import { html, LitElement, nothing, type TemplateResult } from 'lit';
import { maximum } from '../../../extension/common/lists';
import { counted, formatPercent } from '../../shared/format';
import { latest } from '../../shared/memoize-latest';
import { hue } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import type { CompareActions } from '../actions';
import type { ColouredGroup, Compared, ComparedMetric } from '../compared-metrics';
import type { RunCurve } from '../../../extension/run-data/charts/group-curves';
import { leastRuns, type KeyImportance, type KeyImportances } from './key-importance';
import './parallel-plot';
import { shownTitles, sweepOf, type Sweep } from './sweep-runs';

/** Number of runs below which importances are called rough. */
const roughRuns = 20;

export class SweepSection extends LitElement {
  static override properties = {
    compared: { attribute: false },
    groups: { attribute: false },
    metric: { attribute: false },
    curves: { attribute: false },
    theme: { attribute: false },
  };

  declare compared: Compared;
  /** The shown groups. */
  declare groups: readonly ColouredGroup[];
  declare metric: ComparedMetric;
  /** The metric's curve of each run; null until the curves have been received. */
  declare curves: readonly RunCurve[] | null;
  declare theme: Theme;
  declare actions: CompareActions;

  private sweep: Sweep | null = null;
  private readonly compute = latest(sweepOf);

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(): void {
    this.sweep = this.curves && this.compute(this.compared, this.groups, this.metric, this.curves);
  }

  protected override render(): TemplateResult | typeof nothing {
    const { sweep, metric, theme, actions } = this;
    if (!sweep) return nothing;
    const { runs, axes, hiddenKeys } = sweep;
    if (runs.length < 2) return html`<p class="muted">Fewer than two runs have a value of ${metric.title}.</p>`;
    return html`<div class="sweep">
      <div class="sweep-importance">${importanceView(sweep, metric, theme)}</div>
      <div class="sweep-plot"
        ><parallel-plot
          .axes=${axes}
          .runs=${runs}
          .metric=${metric}
          .theme=${theme}
          .actions=${actions}
        ></parallel-plot
        >${
          hiddenKeys > 0
            ? html`<p class="muted">${counted(hiddenKeys, 'less important key')} only in the tables.</p>`
            : nothing
        }</div
      >
    </div>`;
  }
}

function importanceView({ runs, importances }: Sweep, metric: ComparedMetric, theme: Theme): TemplateResult {
  if (!importances)
    return html`<p class="muted"
      >${
        runs.length < leastRuns
          ? `The importance of keys needs at least ${leastRuns} runs with a value of ${metric.title}; there are ${runs.length}.`
          : `No key explains ${metric.title}: the shown runs have equal values or equal configurations.`
      }</p
    >`;
  const order = [...importances.keys].sort((a, b) => b.importance - a.importance);
  const titles = shownTitles(order.map(({ key }) => key));
  const most = maximum(
    order.map(({ importance }) => importance),
    0,
  );
  return html`<table class="importance-table">
      <caption class="visually-hidden">Importance of configuration keys for ${metric.title}</caption>
      <thead
        ><tr
          ><th scope="col">key</th
          ><th
            scope="col"
            title=${`Permutation importance in a random forest: how much the squared error of its predictions grows when the values of the key are exchanged between runs, relative to the variance of ${metric.title}`}
            >importance</th
          ><th
            scope="col"
            title="Spearman’s rank correlation: + if higher values of the key go with higher results, − if they go with lower results. Seen over all runs, so a relation that is not monotone is missing"
            >correlation</th
          ></tr
        ></thead
      >
      <tbody>${order.map((each, i) => importanceRow(each, titles[i], most, theme))}</tbody>
    </table>
    <p class="muted">${qualityOf(importances, runs.length, metric)}</p>`;
}

function importanceRow(
  { key, importance, correlation, together }: KeyImportance,
  title: string,
  most: number,
  { palette }: Theme,
): TemplateResult {
  const share = most > 0 ? (importance / most) * 100 : 0;
  const half = Math.abs(correlation ?? 0) * 50;
  const left = (correlation ?? 0) < 0 ? 50 - half : 50;
  const colour = palette[(correlation ?? 0) < 0 ? hue.orange : hue.blue];
  const same = together.length > 0 ? `\nChanges together with ${together.join(', ')}; they share this importance` : '';
  return html`<tr
    ><th scope="row" class="setting" title=${key + same}
      >${title}${same ? html`<span class="muted"> *</span>` : nothing}</th
    ><td
      ><span class="importance-bar"
        ><span style="width:${share.toFixed(1)}%;background:${palette[hue.grey]}"></span></span
      ><span class="number">${importance.toFixed(2)}</span></td
    ><td
      ><span class="importance-bar centred"
        ><span style="left:${left.toFixed(1)}%;width:${half.toFixed(1)}%;background:${colour}"></span></span
      ><span class="number">${correlation === null ? '–' : hundredths(correlation)}</span></td
    ></tr
  >`;
}

/** Formats a correlation with sign and two digits. */
const hundredths = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(2)}`;

/** Returns sentences that say how far the importances can be trusted. */
function qualityOf({ keys, explained }: KeyImportances, runs: number, { title }: ComparedMetric): string {
  const fit =
    explained > 0.05
      ? `The keys predict ${formatPercent(explained)} of the variance of ${title} in runs left out of the fit.`
      : `The keys do not predict ${title} in runs left out of the fit, so the importances are noise.`;
  const rough = runs < roughRuns ? ` With ${runs} runs, importances are rough.` : '';
  const same = keys.some(({ together }) => together.length > 0) ? ' * changes together with another key.' : '';
  return fit + rough + same;
}

customElements.define('sweep-section', SweepSection);
