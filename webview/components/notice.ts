// Placeholders for a page's content: a notice with the cause, the remedy and one button, and a skeleton while content
// loads.
import { html, nothing, type TemplateResult } from 'lit';
import { button } from './controls';

export interface NoticeOptions {
  kind: 'empty' | 'error';
  title: string;
  /**
   * Complete sentences that say what to do next. For an error, they also say where it occurred and which value caused
   * it.
   */
  text: string;
  action?: { label: string; run(): void };
}

/** Renders a block in the middle of the page; an error is announced to screen readers. */
export function notice({ kind, title, text, action }: NoticeOptions): TemplateResult {
  return html`<section class="notice notice-${kind}" role=${kind === 'error' ? 'alert' : 'status'}>
    <h2>${title}</h2>
    <p>${text}</p>
    ${action ? button({ label: action.label, primary: kind === 'empty', onClick: () => action.run() }) : nothing}
  </section>`;
}

/**
 * Renders `count` grey blocks in place of content that is still loading. `shape` is the class of the page's style sheet
 * that gives the blocks the layout of the content.
 */
export function skeleton(shape: string, count: number, label: string): TemplateResult {
  const blocks = Array.from({ length: count }, () => html`<div class="skeleton-block"></div>`);
  return html`<div class="skeleton ${shape}" role="status" aria-label=${label}>${blocks}</div>`;
}
