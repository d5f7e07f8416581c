// What a page shows when it has nothing else to show: what is missing, what comes next, one button. And the shape of what comes
// while it loads.
import { h } from './dom';
import { button } from './toolkit';

export interface NoticeOptions {
  kind: 'empty' | 'error';
  title: string;
  /** Plain sentences: what comes next, or place, value and remedy. */
  text: string;
  action?: { label: string; run(): void };
}

/** A block in the page's middle; an error is announced to screen readers. */
export function notice({ kind, title, text, action }: NoticeOptions): HTMLElement {
  return h(
    'section',
    { class: `notice notice-${kind}`, role: kind === 'error' ? 'alert' : 'status' },
    h('h2', {}, title),
    h('p', {}, text),
    action && button({ label: action.label, primary: kind === 'empty', onClick: action.run }),
  );
}

/** Grey blocks in the shape of what comes; `shape` names a class of the page's style sheet. */
export function skeleton(shape: string, count: number, label: string): HTMLElement {
  const blocks = Array.from({ length: count }, () => h('div', { class: 'skeleton-block' }));
  return h('div', { class: `skeleton ${shape}`, role: 'status', 'aria-label': label }, ...blocks);
}
