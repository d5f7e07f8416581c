// Owns a canvas and the plot drawn on it. The plot is created when there is data to draw. It is destroyed when the
// element leaves the page or `data` becomes null, so that a chart off screen holds no canvas memory.
import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import type { Plot, Plotter } from '../charts/plot';
import type { PlotData } from '../../extension/run-data/charts/plot-data';

export interface Crosshair {
  x: number;
  label: string;
}

export class PlotCanvas extends LitElement {
  static override properties = {
    plotter: { attribute: false },
    data: { attribute: false },
    crosshair: { attribute: false },
    label: { attribute: false },
  };

  declare plotter: Plotter;
  /** Content of the plot; null while the chart is off screen or has no values. */
  declare data: PlotData | null;
  declare crosshair: Crosshair | null;
  /** Accessible name of the drawing; empty before the first drawing. */
  declare label: string;
  /** The current plot; null before the first drawing and after `data` has become null. */
  plot: Plot | null = null;

  constructor() {
    super();
    this.data = null;
    this.crosshair = null;
    this.label = '';
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    // An element that is moved within the page is connected again before the microtask runs.
    queueMicrotask(() => !this.isConnected && this.destroyPlot());
  }

  /**
   * Performs a pending update immediately. Called by a chart that contains this element and is itself updated by the
   * draw queue.
   */
  flush(): void {
    if (this.isUpdatePending) this.performUpdate();
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override render(): TemplateResult {
    return html`<canvas role="img" aria-label=${this.label || nothing}></canvas>
      <div class="crosshair" ?hidden=${!this.crosshair || !this.data}><span>${this.crosshair?.label}</span></div>`;
  }

  protected override updated(changed: PropertyValues<this>): void {
    const { data, crosshair } = this;
    if (changed.has('data') && data && this.isConnected) {
      this.plot ??= this.plotter(this.querySelector('canvas')!);
      this.plot.update(data);
    }
    if (!data) this.destroyPlot();
    if (this.plot && crosshair)
      this.querySelector<HTMLElement>('.crosshair')!.style.transform =
        `translateX(${Math.round(this.plot.pixelOf(crosshair.x))}px)`;
  }

  private destroyPlot(): void {
    this.plot?.destroy();
    this.plot = null;
  }
}

customElements.define('plot-canvas', PlotCanvas);
