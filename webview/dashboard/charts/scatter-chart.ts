// A chart of values against an expression: one point per step. It shares head, menu, size and crosshair with the other
// charts. The pointer selects the nearest point, whose step all charts then show.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { chartCard } from '../../components/chart-card';
import { openMenu } from '../../components/menu';
import { keysOf, type ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { nameOf } from '../../charts/panels';
import { formatNumber } from '../../shared/format';
import { entryOfKey } from '../../shared/keyboard';
import { areSame } from '../../shared/memoize-latest';
import { ChartElement } from './chart-element';
import { titleHint } from './chart-hints';
import { arrangementKeys, chartButtons, scatterMenu } from './chart-menu';
import { chartTable } from './chart-table';
import { chartValues } from './chart-values';
import { nearestPoint, scatterOf, scatterText, scatterView, type Scatter, type Size } from './scatter-drawing';
import { pictureSize } from '../../../extension/run-data/charts/svg-plot';

export class ScatterChart extends ChartElement {
  static override properties = { ...ChartElement.properties, spec: { attribute: false }, size: { state: true } };

  declare spec: ChartSpec;
  declare private size: Size;

  private scatter: Scatter | null = null;
  /** Inputs of `scatter`. */
  private computed: readonly unknown[] = [];
  private readonly resizes = new ResizeObserver(() => this.measure());

  constructor() {
    super();
    this.size = { width: 280, height: 140 };
  }

  /** Returns an exported picture of size `pictureSize` as SVG; null without a point. */
  svg(): string | null {
    const scatter = scatterOf(this.spec, this.context);
    return scatter && scatterText(scatter, pictureSize);
  }

  override openMenu(): void {
    openMenu(this.querySelector<HTMLElement>('[aria-haspopup]')!, this.spec.title, scatterMenu(this));
  }

  protected override enterScreen(): void {
    this.context.store.want(keysOf(this.spec));
    this.measure();
  }

  protected override leaveScreen(): void {
    super.leaveScreen();
    this.computed = [];
  }

  protected override isCurrent(): boolean {
    return areSame(this.inputs, this.computed);
  }

  protected override willUpdate(): void {
    if (!this.isOnScreen || this.isCurrent()) return;
    this.context.store.want(keysOf(this.spec));
    this.scatter = scatterOf(this.spec, this.context);
    this.computed = this.inputs;
  }

  protected override firstUpdated(): void {
    super.firstUpdated();
    this.resizes.observe(this.area!);
  }

  protected override render(): TemplateResult {
    const { spec, context, large, full, table, hovered, tools, scatter } = this;
    const { id, title } = spec;
    const { toggle, openEvent } = tools.actions;
    const { store, smoothing } = context;
    const isWaiting = !scatter && keysOf(spec).some(key => store.has(key) && !store.curve(key));
    const curve = store.smoothed(spec.against!, smoothing);
    const row = curve?.lastFinite(hovered ?? undefined) ?? -1;
    const x = curve && row >= 0 ? formatNumber(curve.values[row]) : '–';
    const values = chartValues(spec, context, { hovered, clipped: false, limits: null, openEvent });
    return chartCard({
      ...{ id, label: title, large, full },
      title: html`<button
        class="plain chart-title"
        type="button"
        title=${titleHint(spec, context)}
        @click=${() => toggle(id, 'enlarged')}
        >${title}</button
      >`,
      state: scatter ? 'drawn' : isWaiting ? 'waiting' : 'empty',
      values: html`${values}<span class="muted" title=${`x axis: ${nameOf(spec.against!)}`}>x ${x}</span>`,
      tools: chartButtons(this),
      content: html`${this.plotView()}${
        table
          ? guard([spec, context, table], () => chartTable(spec, context, table, sort => tools.actions.table(id, sort)))
          : nothing
      }`,
    });
  }

  private get inputs(): readonly unknown[] {
    const { spec, context } = this;
    const { look, xs, x, store } = context;
    return [spec, look, xs.length, x.min, x.max, ...keysOf(spec).map(key => store.curve(key))];
  }

  private get area(): HTMLElement | null {
    return this.querySelector('.chart-plot');
  }

  private plotView(): TemplateResult {
    const { scatter, size, roomy, hovered, table } = this;
    return html`<div
      class="chart-plot"
      tabindex="0"
      role="group"
      aria-label=${`${this.spec.title}: arrow keys move the crosshair, Enter enlarges, f fills the page, m opens the menu`}
      ?hidden=${table !== null}
      @pointermove=${this.onPoint}
      @pointerleave=${this.onLeave}
      @keydown=${this.onKey}
      >${scatter ? scatterView(scatter, size, roomy, hovered) : nothing}</div
    >`;
  }

  private readonly onPoint = ({ clientX, clientY }: PointerEvent): void => {
    if (!this.scatter || !this.area) return;
    const { left, top } = this.area.getBoundingClientRect();
    const point = nearestPoint(this.scatter, this.size, { x: clientX - left, y: clientY - top });
    this.tools.actions.hover(point ? this.context.xs[point.row] : null);
  };

  private readonly onLeave = (): void => this.tools.actions.hover(null);

  private readonly onKey = (event: KeyboardEvent): void => {
    const action = entryOfKey(arrangementKeys, event);
    if (!action) return;
    event.preventDefault();
    action.run(this, this.spec.id, event);
  };

  private measure(): void {
    const [width, height] = [this.area?.clientWidth || 280, this.area?.clientHeight || 140];
    if (width !== this.size.width || height !== this.size.height) this.size = { width, height };
  }
}

customElements.define('scatter-chart', ScatterChart);
