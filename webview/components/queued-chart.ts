// A chart as an element without a shadow root. It observes whether it is on screen. On screen, updates run through the
// draw queue, which limits the drawing time per frame. Off screen, the chart updates immediately and draws nothing. The
// chart's outermost element is a chart card (chart-card.ts).
import { LitElement } from 'lit';
import type { DrawQueue } from '../charts/draw-queue';
import type { OnScreen } from './on-screen';

export abstract class QueuedChart extends LitElement {
  abstract tools: { readonly queue: DrawQueue; readonly screen: OnScreen };
  protected abstract isOnScreen: boolean;

  /** Called when the chart enters the screen, or leaves the screen or the page. */
  protected abstract appear(isOnScreen: boolean): void;

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.hasUpdated) this.watch();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    // A chart that is moved within the page is connected again before the microtask runs.
    queueMicrotask(() => {
      if (this.isConnected) return;
      if (this.firstElementChild) this.tools.screen.unobserve(this.firstElementChild);
      this.appear(false);
    });
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override scheduleUpdate(): void | Promise<unknown> {
    if (!this.isOnScreen) return super.scheduleUpdate();
    return new Promise<void>(resolve => {
      this.tools.queue.add(() => {
        try {
          void super.scheduleUpdate();
        } finally {
          resolve();
        }
      });
    });
  }

  protected override firstUpdated(): void {
    this.watch();
  }

  private watch(): void {
    this.tools.screen.observe(this.firstElementChild!, isOnScreen => this.appear(isOnScreen));
  }
}
