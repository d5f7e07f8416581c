// Base of elements that draw on a canvas. They paint after each update and whenever their size changes. Their content is
// in the page's own tree, so the page's styles apply to it.
import { LitElement, type PropertyValues } from 'lit';

export abstract class PaintedElement extends LitElement {
  private readonly resizes = new ResizeObserver(() => this.paint());

  override connectedCallback(): void {
    super.connectedCallback();
    this.resizes.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.resizes.disconnect();
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override updated(_changed: PropertyValues<this>): void {
    this.paint();
  }

  protected abstract paint(): void;
}
