// Keeps a scrolling element of a template at its end. Used for lists, which must remain `<ol>` or `<ul>` elements. If
// the user may scroll back, use `scroll-follower` instead.
import { noChange } from 'lit';
import { Directive, directive, type ElementPart } from 'lit/directive.js';

class StayAtEnd extends Directive {
  private content: unknown;

  override update({ element }: ElementPart, [on, content]: [boolean, unknown]): typeof noChange {
    const changed = content !== this.content;
    this.content = content;
    // Runs in a microtask, because lit renders the element's children after its bindings.
    if (on && changed) queueMicrotask(() => (element.scrollTop = element.scrollHeight));
    return noChange;
  }

  render(_on: boolean, _content: unknown): typeof noChange {
    return noChange;
  }
}

/** `<ol ${stayAtEnd(isNewest, steps)}>` scrolls to the end whenever `steps` changes while `isNewest` is true. */
export const stayAtEnd = directive(StayAtEnd);
