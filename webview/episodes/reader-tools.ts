// The buttons above the open episode: reading mode, raw text, tokens, trace, and the way back to the list if that is
// hidden.
import { h, replaceChildren } from '../shared/dom';
import { icon } from '../shared/icons';
import { button } from '../shared/toolkit';
import type { EpisodesView, Reading } from './view';

export interface ReaderEvents {
  back(): void;
  readAs(reading: Reading): void;
  toggle(setting: 'raw' | 'tokens'): void;
  openTrace(): void;
}

const readings: readonly [Reading, string, string][] = [
  ['episode', 'Episode', 'The episode’s turns ( e )'],
  ['group', 'Group', 'The members of its prompt group side by side ( g )'],
  ['training', 'Over training', 'The same prompt from step to step ( t )'],
];

export function readerTools(events: ReaderEvents): {
  element: HTMLElement;
  update(view: EpisodesView, isOpen: boolean): void;
} {
  const element = h('div', { class: 'episode-tools' });
  const back = button({
    label: 'Episodes',
    icon: icon('left'),
    title: 'Back to the list (Escape)',
    onClick: events.back,
  });
  const trace = button({
    label: 'Open trace',
    title: 'Open as a document in the editor, token by token ( o )',
    onClick: events.openTrace,
  });
  return {
    element,
    update({ raw, tokens, reading }, isOpen) {
      const choices = readings.map(([to, label, title]) =>
        button({ label, title, pressed: reading === to, onClick: () => events.readAs(to) }),
      );
      const rawText = button({
        label: 'Raw text',
        pressed: raw,
        title: 'The complete text of the model ( r )',
        onClick: () => events.toggle('raw'),
      });
      const byToken = button({
        label: 'Tokens',
        pressed: tokens,
        title: 'Sampled tokens by id, shaded by log-prob ( x )',
        onClick: () => events.toggle('tokens'),
      });
      replaceChildren(
        element,
        h('span', { class: 'back' }, back),
        isOpen && h('span', { class: 'readings', role: 'group', 'aria-label': 'View' }, ...choices),
        isOpen && rawText,
        isOpen && reading === 'episode' && byToken,
        isOpen && trace,
      );
    },
  };
}
