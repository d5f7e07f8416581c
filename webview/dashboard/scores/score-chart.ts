// The chart of the distribution of episode scores over training. The host aggregates the visible steps into columns of
// 3 pixels; the header shows the values of the column under the crosshair.
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { chartCard } from '../../components/chart-card';
import { button } from '../../components/controls';
import { openMenu } from '../../components/menu';
import { entryOfKey } from '../../shared/keyboard';
import { areSame } from '../../shared/memoize-latest';
import { ChartElement } from '../charts/chart-element';
import { arrangementItems, arrangementKeys } from '../charts/chart-menu';
import { newestFirst } from '../charts/chart-table';
import { formatX } from '../../../extension/run-data/charts/format-x';
import { drawScores, innerWidth, pixelOf, xAt } from './score-drawing';
import { ScoreLoader, type LoadedScores } from './score-loader';
import { scoreTable, scoreValues } from './score-texts';

const id = 'scores';
/** Width of a column in pixels. */
const columnPixels = 3;
const hint =
  'Distribution of the scores (reward + penalty, before normalisation) of each step’s training episodes; darker means a larger share of the step’s episodes.';

export class ScoreChart extends ChartElement {
  static override properties = { ...ChartElement.properties, scores: { state: true }, size: { state: true } };

  declare private scores: LoadedScores;
  declare private size: { readonly width: number; readonly height: number };

  private loader: ScoreLoader | null = null;
  /** Inputs of the last drawing. */
  private drawn: readonly unknown[] = [];
  private readonly resizes = new ResizeObserver(() => this.measure());

  constructor() {
    super();
    this.scores = { strips: [], from: 0, to: 0 };
    this.size = { width: 280, height: 140 };
  }

  protected override enterScreen(): void {
    this.measure();
    this.load();
  }

  protected override leaveScreen(): void {
    super.leaveScreen();
    this.drawn = [];
    this.loader?.stop();
  }

  protected override isCurrent(): boolean {
    return areSame(this.inputs, this.drawn);
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (this.isOnScreen && (changed.has('context') || changed.has('size'))) this.load();
  }

  protected override render(): TemplateResult {
    const { large, full, table, hovered, scores, tools, context } = this;
    const enlarge = (): void => tools.actions.toggle(id, 'enlarged');
    const isOpen = table !== null;
    return chartCard({
      id,
      label: id,
      title: html`<button class="plain chart-title" type="button" title=${hint} @click=${enlarge}>Scores</button>`,
      ...{ large, full },
      state: this.drawn.length === 0 || scores.strips.length > 0 ? 'drawn' : 'empty',
      values: html`${scoreValues(scores, hovered === null ? null : context.store.steps[hovered])}`,
      tools: html`${button({
        label: `Table of ${id}`,
        icon: 'table',
        iconOnly: true,
        pressed: isOpen,
        onClick: () => tools.actions.table(id, isOpen ? null : newestFirst),
      })}${button({ label: `Enlarge ${id}`, icon: 'grow', iconOnly: true, onClick: enlarge })}${button({
        label: `More about ${id}`,
        icon: 'more',
        iconOnly: true,
        hasPopup: true,
        onClick: () => this.openMenu(),
      })}`,
      content: html`${this.plotView()}${isOpen ? scoreTable(scores) : nothing}`,
    });
  }

  protected override firstUpdated(): void {
    super.firstUpdated();
    this.resizes.observe(this.area!);
  }

  protected override updated(): void {
    const { context, scores, size, roomy, table } = this;
    if (!this.isOnScreen || table || this.isCurrent()) return;
    this.drawn = this.inputs;
    drawScores(this.querySelector('canvas')!, size, scores, context, roomy);
  }

  /** Inputs of the drawing; if none has changed, nothing is redrawn. */
  private get inputs(): readonly unknown[] {
    const { context, scores, size, roomy } = this;
    const { look, xs, x } = context;
    return [look, xs.length, x.min, x.max, scores, size, roomy];
  }

  private plotView(): TemplateResult {
    const { hovered, context, size, table } = this;
    const { x, xs, axis, store } = context;
    const at = hovered === null ? Number.NaN : xs[hovered];
    const isInside = at >= x.min && at <= x.max;
    const pixel = isInside ? Math.round(pixelOf(at, size.width, context)) : 0;
    return html`<div
      class="chart-plot"
      tabindex="0"
      ?hidden=${table !== null}
      @pointermove=${this.onPoint}
      @pointerleave=${this.onLeave}
      @keydown=${this.onKey}
    >
      <canvas role="img" aria-label="Distribution of the scores of each step’s training episodes"></canvas>
      <div class="crosshair" ?hidden=${!isInside} style="transform:translateX(${pixel}px)"
        ><span>${isInside ? formatX(at, axis, store.steps[hovered!]) : ''}</span></div
      >
    </div>`;
  }

  private readonly onPoint = ({ offsetX }: PointerEvent): void =>
    this.tools.actions.hover(xAt(offsetX, this.size.width, this.context));

  private readonly onLeave = (): void => this.tools.actions.hover(null);

  private readonly onKey = (event: KeyboardEvent): void => {
    const action = entryOfKey(arrangementKeys, event);
    if (!action) return;
    event.preventDefault();
    action.run(this, id, event);
  };

  override openMenu(): void {
    openMenu(this.querySelector<HTMLElement>('[aria-haspopup]')!, id, arrangementItems(id, this));
  }

  private get area(): HTMLElement | null {
    return this.querySelector('.chart-plot');
  }

  private measure(): void {
    const [width, height] = [this.area?.clientWidth || 280, this.area?.clientHeight || 140];
    if (width !== this.size.width || height !== this.size.height) this.size = { width, height };
  }

  /** Requests the scores of the visible steps. */
  private load(): void {
    const { store, xs, x } = this.context;
    if (store.length === 0) return;
    const first = xs.findIndex(each => each >= x.min);
    const last = xs.findLastIndex(each => each <= x.max);
    const [from, to] = [store.steps[Math.max(0, first)], store.steps[Math.max(0, last)]];
    const columns = Math.max(1, Math.min(to - from + 1, Math.floor(innerWidth(this.size.width) / columnPixels)));
    this.loader ??= new ScoreLoader(this.tools.host, scores => (this.scores = scores));
    this.loader.want({ from, to, columns });
  }
}

customElements.define('score-chart', ScoreChart);
