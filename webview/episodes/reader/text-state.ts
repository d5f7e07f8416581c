// A state as text, with the changes since the previous state marked.
import { html, type TemplateResult } from 'lit';
import { markedText } from './marked-text';
import { markedLines } from './text-diff';

/** Renders a state as text, with its changes since the previous one. */
export function textState(state: string, previous: string | null): TemplateResult {
  const lineEnd = { text: '\n', changed: false };
  const parts = markedLines(state, previous).flatMap((line, i) => (i > 0 ? [lineEnd, line] : [line]));
  return html`<pre class="state-text">${markedText(parts, 'changed since the last turn')}</pre>`;
}
