// A scroll container that stays at its end while `following` is true. It changes only the scroll position and reports
// when the user scrolls back. The surrounding template sets the container's children, role, accessible name and focus.
import { ReactiveElement, type PropertyValues } from 'lit';

/** The container is treated as scrolled to its end if it is less than this number of pixels away from the end. */
const nearEnd = 24;

export class ScrollFollower extends ReactiveElement {
  static override properties = { following: { attribute: false }, content: { attribute: false } };

  declare following: boolean;
  /**
   * A value that must change whenever the children change. Each change scrolls to the end while `following` is true.
   */
  declare content: unknown;
  declare onScrollBack: () => void;

  private top = 0;
  private height = 0;

  constructor() {
    super();
    this.following = false;
    this.onScrollBack = () => undefined;
    this.addEventListener('scroll', () => this.onScroll());
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override updated(_changed: PropertyValues): void {
    if (this.following) this.scrollTop = this.scrollHeight;
  }

  private onScroll(): void {
    const back = this.scrollTop < this.top - 1 && this.scrollHeight >= this.height;
    const atEnd = this.scrollHeight - this.scrollTop - this.clientHeight < nearEnd;
    [this.top, this.height] = [this.scrollTop, this.scrollHeight];
    if (back && !atEnd && this.following) this.onScrollBack();
  }
}

customElements.define('scroll-follower', ScrollFollower);
