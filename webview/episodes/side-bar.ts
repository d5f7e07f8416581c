// The head of the Episodes page's list: run, step, filter line, and what the filter let through.
import type { RunSummary } from '../../extension/protocol/pages';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { icon } from '../shared/icons';
import { statusDot } from '../shared/run-status';
import { button, textField } from '../shared/toolkit';
import { sameStep, type StepOf } from './episode-store';

export interface SideBarState {
  run: RunSummary;
  steps: readonly StepOf[];
  selected: StepOf | null;
  /** The filter names steps itself: stepping has no effect. */
  byFilter: boolean;
}

export interface SideBar {
  element: HTMLElement;
  update(state: SideBarState): void;
  /** One line of facts, and what is wrong with the filter. */
  say(facts: string[], problems: string[]): void;
  focusFilter(): void;
}

export interface SideBarEvents {
  filter(line: string): void;
  goTo(step: StepOf): void;
}

const filterHelp =
  'success:false  return<0  score>=1  text:"stuck"  step:40..60  group:3  member:0  turns:5  tokens>200  tag:sokoban  mode:val  kept:false  -text:wall  ( / )';

export function sideBar(filter: string, events: SideBarEvents): SideBar {
  const name = h('h1', {});
  const dot = statusDot();
  const where = h('div', { class: 'stepper' });
  const line = textField({
    label: 'Filter episodes',
    placeholder: 'success:false return<0 text:"…"',
    class: 'filter',
    title: filterHelp,
    value: filter,
    onInput: events.filter,
  });
  const facts = h('p', { class: 'muted list-facts', role: 'status' });
  const wrong = h('p', { class: 'filter-problem', role: 'alert', hidden: true });
  return {
    element: h(
      'header',
      { class: 'side-head' },
      h('div', { class: 'side-title' }, name, dot.element),
      where,
      line,
      wrong,
      facts,
    ),
    update(state) {
      setText(name, state.run.name);
      setAttribute(name, 'title', state.run.id);
      dot.update(state.run);
      replaceChildren(where, ...stepper(state, events.goTo));
    },
    say(texts, problems) {
      setText(facts, texts.join(' · '));
      setText(wrong, problems.join('; '));
      wrong.hidden = problems.length === 0;
    },
    focusFilter: () => line.focus(),
  };
}

/** Back, step, forward, newest; and training or validation where both have episodes. */
function stepper({ steps, selected, byFilter }: SideBarState, goTo: (step: StepOf) => void): HTMLElement[] {
  if (!selected) return [];
  const same = steps.filter(step => step.mode === selected.mode);
  const at = same.findIndex(step => sameStep(step, selected));
  const last = same.length - 1;
  const go = (label: string, sign: 'left' | 'right' | 'newest', to: StepOf | undefined) => {
    const element = button({ label, icon: icon(sign), iconOnly: true, onClick: () => to && goTo(to) });
    setAttribute(element, 'disabled', to && !byFilter ? null : '');
    return element;
  };
  const newer = last - at;
  const label = selected.mode === 'val' ? `validation ${selected.step}` : `step ${selected.step}`;
  const other = selected.mode === 'train' ? 'val' : 'train';
  const nearest = nearestOf(
    steps.filter(step => step.mode === other),
    selected.step,
  );
  const swap =
    nearest &&
    button({
      label: other === 'val' ? 'Validation' : 'Training',
      title: other === 'val' ? 'Episodes of the nearest validation' : 'Episodes of the nearest training step',
      onClick: () => goTo(nearest),
    });
  return [
    go('Step before ( [ )', 'left', same[at - 1]),
    h('strong', { class: 'step-name' }, byFilter ? 'steps by filter' : label),
    go('Next step ( ] )', 'right', same[at + 1]),
    go(
      newer > 0 ? `Newest step, ${same[last].step}` : 'This is the newest step',
      'newest',
      newer > 0 ? same[last] : undefined,
    ),
    ...(newer > 0 && !byFilter ? [h('span', { class: 'muted newer' }, `${newer} newer`)] : []),
    ...(swap ? [h('span', { class: 'swap' }, swap)] : []),
  ];
}

function nearestOf(steps: readonly StepOf[], step: number): StepOf | undefined {
  return [...steps].sort((a, b) => Math.abs(a.step - step) - Math.abs(b.step - step))[0];
}
