// Keeps a scrolling element of a template at its end. For a list whose element must stay what it is; a container that
// the user scrolls back is a `scroll-follower`.
import { noChange } from 'lit';
import { Directive, directive, type ElementPart } from 'lit/directive.js';

class StayAtEnd extends Directive {
  private content: unknown;

  override update({ element }: ElementPart, [on, content]: [boolean, unknown]): typeof noChange {
    const changed = content !== this.content;
    this.content = content;
    // The children of the element are rendered after its own bindings.
    if (on && changed) queueMicrotask(() => (element.scrollTop = element.scrollHeight));
    return noChange;
  }

  render(_on: boolean, _content: unknown): typeof noChange {
    return noChange;
  }
}

/** `<ol ${stayAtEnd(isNewest, steps)}>`: scrolls to the end when `content` is another one, while `on`. */
export const stayAtEnd = directive(StayAtEnd);
