// Placeholders of a page: a notice of what is missing and what to do, with one button, and a skeleton while content
// loads.
import { h } from './dom';
import { button } from './toolkit';

export interface NoticeOptions {
  kind: 'empty' | 'error';
  title: string;
  /** Plain sentences: the next step, or place, value and remedy. */
  text: string;
  action?: { label: string; run(): void };
}

/** A block in the middle of the page; an error is announced to screen readers. */
export function notice({ kind, title, text, action }: NoticeOptions): HTMLElement {
  return h(
    'section',
    { class: `notice notice-${kind}`, role: kind === 'error' ? 'alert' : 'status' },
    h('h2', {}, title),
    h('p', {}, text),
    action && button({ label: action.label, primary: kind === 'empty', onClick: action.run }),
  );
}

/** Grey blocks in the shape of the content; `shape` is a class of the page's style sheet. */
export function skeleton(shape: string, count: number, label: string): HTMLElement {
  const blocks = Array.from({ length: count }, () => h('div', { class: 'skeleton-block' }));
  return h('div', { class: `skeleton ${shape}`, role: 'status', 'aria-label': label }, ...blocks);
}
