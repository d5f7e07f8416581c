// Reports to the charts and pictures of a page whether they are on screen or close to it.

export class OnScreen {
  private readonly tell = new WeakMap<Element, (isOnScreen: boolean) => void>();
  private readonly observer: IntersectionObserver;

  /** @param margin how close to the visible part of the page or of a scrolled box an element is reported, in CSS */
  constructor(margin = '100px') {
    const margins = { rootMargin: margin, scrollMargin: margin };
    this.observer = new IntersectionObserver(entries => {
      for (const { target, isIntersecting } of entries) this.tell.get(target)?.(isIntersecting);
    }, margins);
  }

  /** Calls `changed` once at the start and again at every change. Its argument is true if the element is on screen. */
  observe(element: Element, changed: (isOnScreen: boolean) => void): void {
    this.tell.set(element, changed);
    this.observer.observe(element);
  }

  unobserve(element: Element): void {
    this.tell.delete(element);
    this.observer.unobserve(element);
  }
}
