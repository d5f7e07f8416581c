// The bar over the charts: which run, where it stands, what can be asked of it, and how the charts are shown.
import type { RunSummary } from '../../extension/protocol/pages';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatDuration, formatNumber, formatPercent } from '../shared/format';
import { icon, type IconName } from '../shared/icons';
import { commandsFor, standingOf, statusDot } from '../shared/run-status';
import { button, dropdown, textField } from '../shared/toolkit';
import type { DashboardView } from './view';

export type Command = 'pause' | 'resume' | 'stop' | 'episodes' | 'log';

export interface TopBarEvents {
  command(command: Command): void;
  change(part: Partial<DashboardView>): void;
  search(text: string): void;
}

const words: Record<'pause' | 'resume' | 'stop', [label: string, icon: IconName, title: string]> = {
  pause: ['Pause', 'pause', 'Pause after the step in hand'],
  resume: ['Resume', 'play', 'Go on from where the run stands'],
  stop: ['Stop', 'stop', 'End the run after the step in hand, with a checkpoint'],
};

export interface TopBar {
  element: HTMLElement;
  update(run: RunSummary): void;
  focusSearch(): void;
  /** Shows the settings as they are now. */
  show(view: DashboardView): void;
  /** Whether the run's lines carry the time that the time axis needs. */
  allowTime(allowed: boolean): void;
  /** Hides the controls of charts while there are none. */
  showControls(shown: boolean): void;
}

export function topBar(view: DashboardView, events: TopBarEvents): TopBar {
  const name = h('h1', {});
  const dot = statusDot();
  const facts = h('dl', { class: 'facts' });
  const buttons = h('div', { class: 'buttons' });
  const progress = h(
    'div',
    { class: 'progress', role: 'progressbar', 'aria-label': 'steps done', 'aria-valuemin': 0 },
    h('span'),
  );
  const error = h('p', { class: 'run-error', role: 'alert', hidden: true });
  const search = textField({
    label: 'Search metrics',
    placeholder: 'Search metrics',
    class: 'search',
    title: 'Name or key of a metric ( / )',
    onInput: events.search,
  });
  const smoothing = smoothingSlider(view.smoothing, value => events.change({ smoothing: value }));
  const axis = dropdown({
    label: 'X axis',
    choices: [
      ['step', 'by step'],
      ['time', 'by time'],
    ] as const,
    value: view.axis,
    onChange: value => events.change({ axis: value }),
  });
  const table = button({
    label: 'Table view',
    icon: icon('table'),
    iconOnly: true,
    onClick: () => events.change({ table: table.getAttribute('aria-pressed') !== 'true' }),
  });
  const controls = h('div', { class: 'top-row controls' }, search, smoothing.element, axis, table);
  let commands = '';
  const bar: TopBar = {
    element: h(
      'header',
      { class: 'top-bar' },
      h('div', { class: 'top-row' }, name, dot.element, facts, buttons),
      progress,
      error,
      controls,
    ),
    update(run) {
      setText(name, run.name);
      setAttribute(name, 'title', `${run.id} · ${run.config_name} · started ${run.created}`);
      dot.update(run);
      showFacts(facts, run);
      const { step, total_steps: total } = run.status;
      setAttribute(progress, 'aria-valuemax', String(total));
      setAttribute(progress, 'aria-valuenow', String(step));
      (progress.firstElementChild as HTMLElement).style.width =
        `${total > 0 ? Math.min(100, (step / total) * 100) : 0}%`;
      setText(error, run.status.error ?? '');
      error.hidden = !run.status.error;
      const possible = commandsFor(standingOf(run));
      if (possible.join() === commands && buttons.childElementCount > 0) return;
      commands = possible.join();
      replaceChildren(
        buttons,
        ...possible.map(command => {
          const [label, sign, title] = words[command];
          return button({ label, icon: icon(sign), iconOnly: true, title, onClick: () => events.command(command) });
        }),
        button({ label: 'Log', title: 'Open the trainer’s log', onClick: () => events.command('log') }),
        button({
          label: 'Episodes',
          primary: true,
          title: 'Read the episodes of this run',
          onClick: () => events.command('episodes'),
        }),
      );
    },
    focusSearch: () => search.focus(),
    show(now) {
      setAttribute(table, 'aria-pressed', String(now.table));
      smoothing.show(now.smoothing);
      if (axis.value !== now.axis) axis.value = now.axis;
    },
    showControls: shown => void (controls.hidden = !shown),
    allowTime: allowed => setAttribute(axis, 'disabled', allowed ? null : ''),
  };
  return bar;
}

function showFacts(facts: HTMLElement, { status, live }: RunSummary): void {
  const pairs: [string, string, string][] = [
    ['step', `${status.step} / ${status.total_steps}`, 'Steps finished of steps planned'],
  ];
  if (status.success !== null)
    pairs.push(['success', formatPercent(status.success), 'Newest validation success, else training success']);
  if (live && status.eta_s !== null)
    pairs.push(['left', formatDuration(status.eta_s), 'Time left at the present speed']);
  if (live && status.tokens_per_s !== null)
    pairs.push(['tokens/s', formatNumber(status.tokens_per_s), 'Tokens per second of the whole step']);
  const texts = pairs.map(pair => pair.join('\n')).join('\n');
  if (facts.dataset.shown === texts) return;
  facts.dataset.shown = texts;
  replaceChildren(
    facts,
    ...pairs.map(([label, value, title]) => h('div', { title }, h('dt', {}, label), h('dd', {}, value))),
  );
}

/** The slider and its value as a text. */
function smoothingSlider(
  value: number,
  changed: (value: number) => void,
): { element: HTMLElement; show(value: number): void } {
  const input = h('input', { type: 'range', min: 0, max: 0.99, step: 0.01, value, 'aria-label': 'Smoothing' });
  const output = h('output', {}, value.toFixed(2));
  input.addEventListener('input', () => {
    setText(output, Number(input.value).toFixed(2));
    changed(Number(input.value));
  });
  const element = h(
    'label',
    { class: 'smoothing', title: 'Weight of the past in the smoothed line; 0 shows the values as they are' },
    'smoothing',
    input,
    output,
  );
  return {
    element,
    show(now) {
      if (Number(input.value) !== now) input.value = String(now);
      setText(output, now.toFixed(2));
    },
  };
}
