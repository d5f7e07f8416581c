// Renders a text with its changed parts marked. Creates as few DOM nodes as possible.
import { html, type TemplateResult } from 'lit';
import type { Part } from './text-diff';

/** Renders the parts of a text. `title` is the tooltip of each mark. */
export function markedText(parts: readonly Part[], title: string): (string | TemplateResult)[] {
  const pieces: (string | TemplateResult)[] = [];
  for (const { text, changed } of parts) {
    const last = pieces.at(-1);
    if (changed) pieces.push(html`<mark title=${title}>${text}</mark>`);
    else if (typeof last === 'string') pieces[pieces.length - 1] = last + text;
    else pieces.push(text);
  }
  return pieces;
}
