// @vitest-environment happy-dom
// The help of a page's keys: it opens on `?`, lists the keys of the page's own tables, and keeps keys from the page.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { offerKeyHelp } from '../../../webview/components/key-help';
import { requestKeys } from '../../../webview/play/requests';
import { namedKeys } from '../../../webview/play/action-keys';
import { playerKeys } from '../../../webview/episodes/player/player-control';
import { keyName, onKeys } from '../../../webview/shared/keyboard';
import { freshPage } from './page-host';

let root: HTMLElement;
beforeEach(() => (root = freshPage()));

const help = (): HTMLDialogElement | null => document.querySelector('dialog');
const pressAt = (target: EventTarget, key: string, more: KeyboardEventInit = {}): KeyboardEvent => {
  const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, composed: true, ...more });
  target.dispatchEvent(event);
  return event;
};
const rows = (): string[] =>
  [...help()!.querySelectorAll('dl > div')].map(row =>
    [[...row.querySelectorAll('kbd')].map(key => key.textContent).join(' '), row.querySelector('dd')!.textContent].join(
      ': ',
    ),
  );

test('lists the keys of the page on ?, keys with the same action in one row, and closes on Escape and on ?', () => {
  const escape = vi.fn();
  const zoom = { does: 'Zoom in', run: vi.fn() };
  const keys = {
    '+': zoom,
    ArrowLeft: { does: 'Previous', run: vi.fn() },
    '=': zoom,
    Escape: { does: 'Back', run: escape },
  };
  onKeys(root, keys);
  offerKeyHelp(() => [{ title: 'Page', keys }]);
  for (const closing of ['Escape', '?']) {
    expect(pressAt(root, '?').defaultPrevented).toBe(true);
    expect(help()!.open).toBe(true);
    expect(rows()).toEqual(['+ =: Zoom in', '←: Previous', 'Esc: Back', '?: Show these keys']);
    expect([...help()!.querySelectorAll('h3')].map(({ textContent }) => textContent)).toEqual(['Page', 'Everywhere']);
    root.append(help()!); // the dialog's events now also reach the page's listener, as they reach the document
    pressAt(help()!.querySelector('h2')!, '+');
    pressAt(help()!.querySelector('h2')!, closing);
    expect(help()).toBeNull();
  }
  expect(zoom.run).not.toHaveBeenCalled();
  expect(escape).not.toHaveBeenCalled();
});

test('leaves ? to text fields and to shortcuts of the editor', () => {
  offerKeyHelp(() => []);
  const field = document.createElement('input');
  root.append(field);
  expect(pressAt(field, '?').defaultPrevented).toBe(false);
  expect(pressAt(root, '?', { ctrlKey: true }).defaultPrevented).toBe(false);
  expect(help()).toBeNull();
});

test('every page offers the help', () => {
  const pages = join(import.meta.dirname, '../../../webview');
  const without = readdirSync(pages, { withFileTypes: true })
    .filter(entry => entry.isDirectory() && !['charts', 'components', 'report', 'shared'].includes(entry.name))
    .filter(({ name }) => !readFileSync(join(pages, name, 'page.ts'), 'utf8').includes('offerKeyHelp('));
  expect(without.map(({ name }) => name)).toEqual([]);
});

test('names keys, and lists the actions of the environment', () => {
  expect([' ', 'ArrowUp', 'PageDown', 'constructor', 'x'].map(keyName)).toEqual([
    'Space',
    '↑',
    'Page Down',
    'constructor',
    'x',
  ]);
  expect(namedKeys([{ id: 3, name: 'Left' }])).toEqual({
    ArrowLeft: { does: 'Left' },
    a: { does: 'Left' },
    1: { does: 'Left' },
  });
  for (const { does } of [...Object.values(requestKeys), ...Object.values(playerKeys)])
    expect(does).toMatch(/^[A-Z].*[^.]$/);
});
