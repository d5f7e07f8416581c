// The plane of H(Z|X) (horizontal) and I(X;Z) (vertical). The thresholds of the selected diagnosis separate the four
// regimes, which are drawn as quadrants. A ring on the run's path marks the selected diagnosis, and two lines show its
// 95 % intervals. The plane is a stretched unit square in SVG. The labels and the ring are HTML elements on top of the
// SVG. A click on a diagnosis selects its step.
import { html, LitElement, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { minimum } from '../../../extension/common/lists';
import type { Estimate, PathPoint } from '../../../extension/run-data/collapse-path';
import { diagnoseReasoning, type ReasoningDiagnosis } from '../../../extension/run-data/reasoning-diagnosis';
import { ticksOf } from '../../../extension/run-data/charts/axis';
import { formatNumber, formatPercent, formatTick } from '../../shared/format';
import { acrossTicks, layoutOf, thresholdsOf, type Layout } from './plane-layout';
import { intervals, quadrants, regimeLabels, trail } from './plane-marks';
import { percent } from './unit-square';

export class RunPlane extends LitElement {
  static override properties = {
    path: { attribute: false },
    present: { attribute: false },
    hovered: { state: true },
  };

  /** All diagnoses of the family. */
  declare path: readonly PathPoint[];
  /** Index of the selected diagnosis; −1 before the first diagnosis. */
  declare present: number;
  declare onStep: (step: number) => void;
  declare private hovered: PathPoint | undefined;
  private layout: Layout = layoutOf([]);
  private diagnosis: ReasoningDiagnosis = diagnoseReasoning([]);

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override willUpdate(changed: PropertyValues<RunPlane>): void {
    if (changed.has('path')) this.layout = layoutOf(this.path);
    if (changed.has('path') || changed.has('present'))
      this.diagnosis = diagnoseReasoning(this.path.slice(0, this.present + 1));
  }

  protected override render(): TemplateResult {
    const { range, xMax, x, y } = this.layout.scales;
    const now = this.path[this.present] as PathPoint | undefined;
    const text = now
      ? `Step ${now.step}, ${judged(this.diagnosis)}: ${coordinates(now)}`
      : 'No diagnosis up to this step';
    const up = ticksOf(range, true).map(tick => tickLabel('top', y(tick), tick));
    const across = acrossTicks(xMax).map(tick => tickLabel('left', x(tick), tick));
    return html`<figure class="plane">
      <span class="plane-name-up" title="Mutual information of reasoning Z and prompt X, nats per token"
        >I(X;Z) nats</span
      >
      <div class="plane-up">${up}</div>
      ${this.field(now, text)}
      <div class="plane-across">${across}</div>
      <span
        class="plane-name-across"
        title="Entropy of the reasoning Z given its prompt X, nats per token; square-root scale"
        >H(Z|X) nats per token</span
      >
      <p class="plane-words muted">${text}</p>
    </figure>`;
  }

  private field(now: PathPoint | undefined, text: string): TemplateResult {
    const { hovered, present } = this;
    const { scales, spots } = this.layout;
    const lines = now && thresholdsOf(now, scales);
    const picture = [lines ? quadrants(lines) : nothing, trail(spots, present), now ? intervals(now, scales) : nothing];
    return html`<div
      class="plane-field"
      role="img"
      aria-label="Plane of H(Z|X) and I(X;Z). ${text}"
      title=${hovered ? `step ${hovered.step} · ${coordinates(hovered)}` : nothing}
      style=${hovered ? 'cursor:pointer' : nothing}
      @pointermove=${(event: PointerEvent) => (this.hovered = this.nearest(event))}
      @click=${(event: PointerEvent) => this.choose(event)}
    >
      <svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">${picture}</svg>
      ${lines ? regimeLabels(lines) : nothing}
      ${
        now
          ? html`<span
              class="ring"
              style="left:${percent(scales.x(now.entropy.value))};top:${percent(scales.y(now.information.value))}"
            ></span>`
          : nothing
      }
    </div>`;
  }

  private choose(event: PointerEvent): void {
    const point = this.nearest(event);
    if (point) this.onStep(point.step);
  }

  /**
   * Returns the diagnosis nearest to the pointer. Returns undefined if even this diagnosis is at least 12 pixels and at
   * least a twelfth of the plot's width away from the pointer.
   */
  private nearest({ currentTarget, clientX, clientY }: PointerEvent): PathPoint | undefined {
    const { left, top, width, height } = (currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [(clientX - left) / width, (clientY - top) / height];
    const distances = this.layout.spots.map(([a, b]) => Math.hypot((a - x) * width, (b - y) * height));
    const least = minimum(distances);
    return least < Math.max(12, width / 12) ? this.path[distances.indexOf(least)] : undefined;
  }
}

customElements.define('run-plane', RunPlane);

const tickLabel = (side: 'top' | 'left', share: number, value: number): TemplateResult =>
  html`<span class="tick" style="${side}:${percent(share)}">${formatTick(value, 'number')}</span>`;

/** Formats the diagnosis with the probability of its regime: `template collapse (94 % sure)`. */
const judged = ({ caption, probability }: ReasoningDiagnosis): string =>
  probability === null ? caption : `${caption} (${formatPercent(probability)} sure)`;

function coordinates({ entropy, information, bound }: PathPoint): string {
  const interval = ({ low, high }: Estimate): string =>
    Number.isFinite(low) && Number.isFinite(high) ? ` (${formatNumber(low)} to ${formatNumber(high)})` : '';
  return `H(Z|X) ${formatNumber(entropy.value)}${interval(entropy)} · I(X;Z) ${formatNumber(information.value)}${interval(information)} of at most ${formatNumber(bound)}`;
}
