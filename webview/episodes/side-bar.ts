// The header of the episode list: run, step, kind of episodes, sort order, filter, and a summary of the matches.
import type { RunSummary } from '../../extension/protocol/pages';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { icon } from '../shared/icons';
import { statusDot } from '../shared/run-status';
import { button, dropdown, textField } from '../shared/toolkit';
import { sortColumns, type Sort, type SortColumn } from './listing';

export type Mode = 'train' | 'val' | 'all';

export interface SideBarState {
  run: RunSummary;
  mode: Mode;
  /** Modes for which there are episodes. */
  modes: readonly Mode[];
  sort: Sort | null;
  /** The filter itself sets training or validation, so the mode selection has no effect. */
  modeByFilter: boolean;
}

export interface SideBar {
  element: HTMLElement;
  update(state: SideBarState): void;
  /**
   * Shows the step at the top of the list; null if the list is empty or not grouped by step. `newer`: the list is not
   * scrolled to its start.
   */
  showStep(step: { step: number; mode: 'train' | 'val' } | null, newer: boolean): void;
  /** Shows one line of facts, and the problems of the filter. */
  say(facts: string[], problems: string[]): void;
  focusFilter(): void;
  clearFilter(): void;
}

export interface SideBarEvents {
  filter(line: string): void;
  mode(mode: Mode): void;
  sort(sort: Sort | null): void;
  /** To the previous (−1) or next (1) step of training, or to the newest (0). */
  goStep(by: -1 | 0 | 1): void;
}

const filterHelp =
  'success:false  score<0  return>=1  text:"stuck"  step:40..60  group:3  member:0  seed:10144  turns:5  tokens>200  invalid>0  tag:sokoban  mode:val  kept:false  -text:wall  ( / )';

const modeNames: Record<Mode, string> = { train: 'Training', val: 'Validation', all: 'All' };

export function sideBar(filter: string, events: SideBarEvents): SideBar {
  const name = h('h1', {});
  const dot = statusDot();
  const step = h('strong', { class: 'step-name' });
  const go = (label: string, sign: 'left' | 'right' | 'newest', by: -1 | 0 | 1) =>
    button({ label, icon: icon(sign), iconOnly: true, onClick: () => events.goStep(by) });
  const newest = go('Newest step', 'newest', 0);
  const steps = h(
    'div',
    { class: 'steps' },
    go('Previous step ( [ )', 'left', -1),
    step,
    go('Next step ( ] )', 'right', 1),
    newest,
  );
  const choices = h('div', { class: 'choices' });
  const line = textField({
    label: 'Filter episodes',
    placeholder: 'success:false score<0',
    class: 'filter',
    title: filterHelp,
    value: filter,
    onInput: events.filter,
  });
  const facts = h('p', { class: 'muted list-facts', role: 'status' });
  const wrong = h('p', { class: 'filter-problem', role: 'alert', hidden: true });
  let drawn = '';
  return {
    element: h(
      'header',
      { class: 'side-head' },
      h('div', { class: 'side-title' }, name, dot.element),
      line,
      wrong,
      h('div', { class: 'side-tools' }, steps, choices),
      facts,
    ),
    update(state) {
      setText(name, state.run.name);
      setAttribute(name, 'title', state.run.id);
      dot.update(state.run);
      const { mode, modes, sort, modeByFilter } = state;
      // Rebuilding would close an open dropdown, so it happens only if the content has changed.
      if (drawn === (drawn = JSON.stringify([mode, modes, sort, modeByFilter]))) return;
      steps.hidden = sort !== null;
      const orders: [SortColumn | 'natural', string][] = [
        ['natural', 'by step'],
        ...Object.entries(sortColumns).map(([by, text]): [SortColumn, string] => [by as SortColumn, `by ${text}`]),
      ];
      replaceChildren(
        choices,
        modes.length > 1 &&
          !modeByFilter &&
          dropdown({
            label: 'Episodes of',
            choices: modes.map(each => [each, modeNames[each]] as const),
            value: mode,
            onChange: events.mode,
          }),
        dropdown({
          label: 'Order',
          choices: orders,
          value: sort?.by ?? 'natural',
          onChange: by =>
            events.sort(by === 'natural' ? null : { by, down: by !== 'step' && by !== 'tag' && by !== 'group' }),
        }),
      );
    },
    showStep(at, newer) {
      setText(step, at === null ? '' : `${at.mode === 'val' ? 'validation' : 'step'} ${at.step}`);
      setAttribute(newest, 'disabled', newer ? null : '');
    },
    say(texts, problems) {
      setText(facts, texts.join(' · '));
      setText(wrong, problems.join('; '));
      wrong.hidden = problems.length === 0;
    },
    focusFilter: () => line.focus(),
    clearFilter() {
      line.value = '';
      events.filter('');
    },
  };
}
