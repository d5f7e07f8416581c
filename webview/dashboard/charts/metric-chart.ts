// A chart of metrics. Its header has a short name, the latest value, the change over the last ten steps, and a menu;
// key and description are in a tooltip. A table of the values can replace the drawing. The draw queue calls the
// function that updates the drawing. This function recomputes the drawing only if rows, columns or settings have
// changed. Titles: webview/charts/catalogue.ts; values of the header: chart-values.ts; tooltips: chart-hints.ts.
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { chartCard } from '../../components/chart-card';
import { openMenu } from '../../components/menu';
import '../../components/plot-canvas';
import type { PlotCanvas } from '../../components/plot-canvas';
import { setAttribute } from '../../shared/dom';
import { entryOfKey } from '../../shared/keyboard';
import type { Limits } from '../../../extension/run-data/charts/axis';
import { keysOf, type ChartSpec } from '../../../extension/run-data/charts/catalogue';
import { listenForDrags } from './chart-drag';
import { ChartDrawing } from './chart-drawing';
import { ChartElement } from './chart-element';
import { chartButtons, chartMenu, metricChartKeys } from './chart-menu';
import { chartTable } from './chart-table';
import { explanation, keysHint, nameOfPicture, titleHint } from './chart-hints';
import { chartValues } from './chart-values';
import { formatX } from '../../../extension/run-data/charts/format-x';
import { axisWidth } from '../../charts/plot';
import type { PlotData } from '../../../extension/run-data/charts/plot-data';
import { listenForZoom } from './zoom';

export class MetricChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    spec: { attribute: false },
    log: { attribute: false },
    clipped: { attribute: false },
    limits: { attribute: false },
  };

  /** The chart's lines. Lines may be added during a run, for example when validation starts. */
  declare spec: ChartSpec;
  /** Whether the y scale is logarithmic. */
  declare log: boolean;
  /** Whether the y axis leaves out outliers. */
  declare clipped: boolean;
  /** Ends of the y axis that the user has set; null without. */
  declare limits: Limits | null;

  private readonly drawing = new ChartDrawing();
  /** Width in pixels, cached because reading it from the DOM forces a layout. */
  private width = 0;
  private readonly resizes = new ResizeObserver(() => (this.width = this.canvas?.clientWidth ?? 0));

  constructor() {
    super();
    this.log = false;
    this.clipped = false;
    this.limits = null;
  }

  /** Returns the drawing for an exported picture; null if no line has a value. */
  picture(): PlotData | null {
    return this.drawing.picture(this);
  }

  override openMenu(): void {
    const anchor = this.querySelector<HTMLElement>('[aria-haspopup]')!;
    openMenu(anchor, this.spec.title, chartMenu(this));
  }

  protected override enterScreen(): void {
    this.context.store.want(keysOf(this.spec));
  }

  protected override leaveScreen(): void {
    super.leaveScreen();
    this.drawing.forget();
    if (!this.canvas) return;
    this.canvas.data = null;
    this.canvas.flush();
  }

  protected override isCurrent(): boolean {
    return this.drawing.isOf(this);
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (!this.isOnScreen) return;
    if (changed.has('context')) this.context.store.want(keysOf(this.spec));
    if (this.isCurrent()) return;
    this.width ||= this.canvas?.clientWidth || 280;
    this.drawing.update(this, this.width);
  }

  protected override render(): TemplateResult {
    const { spec, context, large, full, table, hovered, clipped, limits, tools } = this;
    const { filling } = this.drawing;
    const { id, title } = spec;
    const { toggle, openEvent } = tools.actions;
    const enlarge = (): void => toggle(id, 'enlarged');
    return chartCard({
      id,
      label: title,
      title: html`<button class="plain chart-title" type="button" title=${titleHint(spec, context)} @click=${enlarge}
        >${title}</button
      >`,
      ...{ large, full },
      state: filling === 'unknown' ? 'drawn' : filling,
      values: filling !== 'unknown' ? chartValues(spec, context, { hovered, clipped, limits, openEvent }) : nothing,
      // A chart that has never been on screen has no buttons, because creating the buttons of all charts would delay
      // opening the page.
      tools: filling !== 'unknown' ? chartButtons(this) : undefined,
      draggable: true,
      content: html`${this.roomy ? explanation(spec, context) : nothing}${this.plotView()}${table ? this.tableView() : nothing}`,
    });
  }

  protected override firstUpdated(): void {
    super.firstUpdated();
    const area = this.querySelector<HTMLElement>('.chart-plot')!;
    const { actions } = this.tools;
    this.resizes.observe(area);
    listenForZoom(area, area.querySelector<HTMLElement>('.selection')!, {
      xAt: pixel => this.canvas?.plot?.xAt(pixel) ?? Number.NaN,
      edges: () => [axisWidth, this.canvas!.clientWidth - 10],
      zoomBy: (factor, about) => this.canvas?.plot && actions.zoomBy(factor, about),
      panBy: distance => Number.isFinite(distance) && actions.panBy(distance),
      show: part => actions.show(part),
      reset: () => actions.show(null),
    });
    listenForDrags(
      this.querySelector('article')!,
      () => this.spec.id,
      id => actions.move(id, this.spec.id),
    );
  }

  protected override updated(): void {
    this.canvas?.flush(); // draws at once; on screen, the draw queue has called this update
  }

  private get canvas(): PlotCanvas | null {
    return this.querySelector('plot-canvas');
  }

  private plotView(): TemplateResult {
    const { spec, context, hovered, table } = this;
    const { min, max } = context.x;
    const x = hovered === null ? Number.NaN : context.xs[hovered];
    const isInside = x >= min && x <= max;
    const crosshair = isInside && { x, label: formatX(x, context.axis, context.store.steps[hovered!]) };
    return html`<div
      class="chart-plot"
      tabindex="0"
      role="group"
      aria-label=${keysHint(spec)}
      ?hidden=${table !== null}
      @pointermove=${this.onPoint}
      @pointerleave=${this.onLeave}
      @blur=${this.onLeave}
      @click=${this.onClick}
      @keydown=${this.onKey}
    >
      <plot-canvas
        .plotter=${this.tools.plotter}
        .data=${table ? null : this.drawing.data}
        .crosshair=${crosshair || null}
        .label=${nameOfPicture(spec, context)}
      ></plot-canvas>
      <div class="selection" hidden></div>
    </div>`;
  }

  private tableView(): unknown {
    const { spec, context, table, tools } = this;
    return guard([spec, context, table], () =>
      chartTable(spec, context, table!, sort => tools.actions.table(spec.id, sort)),
    );
  }

  private readonly onPoint = ({ currentTarget, offsetX, offsetY }: PointerEvent): void => {
    const plot = this.canvas?.plot;
    if (plot) this.tools.actions.hover(plot.xAt(offsetX));
    const mark = plot?.markAt(offsetX, offsetY);
    const area = currentTarget as HTMLElement;
    area.style.cursor = mark ? 'pointer' : '';
    setAttribute(area, 'title', mark?.event.message ?? null);
  };

  private readonly onLeave = (): void => this.tools.actions.hover(null);

  private readonly onClick = ({ offsetX, offsetY }: MouseEvent): void => {
    const mark = this.canvas?.plot?.markAt(offsetX, offsetY);
    if (mark) this.tools.actions.openEvent(mark.event);
  };

  private readonly onKey = (event: KeyboardEvent): void => {
    const action = entryOfKey(metricChartKeys, event);
    if (!action) return;
    event.preventDefault();
    action.run(this, this.spec.id, event);
  };
}

customElements.define('metric-chart', MetricChart);
