// The bar above the charts: name and status of the run, its commands, and the display settings.
import type { RunSummary } from '../../extension/protocol/pages';
import { progressOf } from '../../extension/run-data/run-progress';
import { h, replaceChildren, setAttribute, setText } from '../shared/dom';
import { formatDuration, formatNumber, formatPercent } from '../shared/format';
import { icon, type IconName } from '../shared/icons';
import { commandsFor, displayStatus, statusDot } from '../shared/run-status';
import { button, dropdown, textField } from '../shared/toolkit';
import type { XAxis } from './series';
import type { DashboardView } from './view';

export type Command = 'pause' | 'resume' | 'stop' | 'settings' | 'episodes' | 'collapse' | 'log';

export interface TopBarEvents {
  command(command: Command): void;
  change(part: Partial<DashboardView>): void;
  search(text: string): void;
  /** Shows all steps again. */
  resetZoom(): void;
  /** Exports the displayed metrics to a file. */
  exportShown(): void;
  openAlarm(): void;
}

const labels: Record<'pause' | 'resume' | 'stop', [label: string, icon: IconName, title: string]> = {
  pause: ['Pause', 'pause', 'Pause after the current step'],
  resume: ['Resume', 'play', 'Continue the run from where it paused, or from its last checkpoint'],
  stop: ['Stop', 'stop', 'Stop the run and save a checkpoint of its last finished step'],
};

export interface TopBar {
  element: HTMLElement;
  update(run: RunSummary): void;
  focusSearch(): void;
  /** Updates the displayed settings. */
  show(view: DashboardView): void;
  /** Sets the available x axes and environment tags. */
  offer(axes: readonly XAxis[], tags: readonly string[]): void;
  /** Shows the number of alarms and the latest one. */
  showAlarms(count: number, newest: string): void;
  /** Share of the metrics that has been read, 0 to 1. */
  showReadProgress(read: number): void;
  /** Hides the chart controls while there are no charts. */
  showControls(shown: boolean): void;
}

export function topBar(view: DashboardView, events: TopBarEvents): TopBar {
  const name = h('h1', {});
  const dot = statusDot();
  const facts = h('dl', { class: 'facts' });
  const buttons = h('div', { class: 'buttons' });
  const progress = h('div', { class: 'progress', role: 'progressbar', 'aria-valuemin': 0 }, h('span'));
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
      ['episodes', 'by episodes'],
    ] as const,
    value: view.axis,
    onChange: value => events.change({ axis: value, zoom: null }),
  });
  const tagSlot = h('span', { hidden: true });
  let tagsShown = '';
  const zoom = button({ label: 'All steps', title: 'Show all steps again ( 0 )', onClick: events.resetZoom });
  const save = button({
    label: 'Export the metrics shown as CSV',
    icon: icon('export'),
    iconOnly: true,
    onClick: events.exportShown,
  });
  const alarms = h('button', { class: 'plain alarms', type: 'button', hidden: true });
  alarms.addEventListener('click', events.openAlarm);
  const readProgress = h('p', { class: 'muted reading', role: 'status', hidden: true });
  const table = button({
    label: 'Table view',
    icon: icon('table'),
    iconOnly: true,
    onClick: () => events.change({ table: table.getAttribute('aria-pressed') !== 'true' }),
  });
  const controls = h(
    'div',
    { class: 'top-row controls' },
    ...[search, smoothing.element, axis, tagSlot, table, save, zoom],
  );
  let shownStatus = '';
  const bar: TopBar = {
    element: h(
      'header',
      { class: 'top-bar' },
      h('div', { class: 'top-row' }, name, dot.element, facts, buttons),
      progress,
      error,
      alarms,
      readProgress,
      controls,
    ),
    update(run) {
      setText(name, run.name);
      setAttribute(name, 'title', `${run.id} · ${run.config_name} · started ${run.created}`);
      dot.update(run);
      showFacts(facts, run);
      const { unit, done, of } = progressOf(run.status);
      setAttribute(progress, 'aria-label', `${unit}s done`);
      setAttribute(progress, 'aria-valuemax', String(of));
      setAttribute(progress, 'aria-valuenow', String(done));
      (progress.firstElementChild as HTMLElement).style.width = `${of > 0 ? Math.min(100, (done / of) * 100) : 0}%`;
      setText(error, run.status.error ?? '');
      error.hidden = !run.status.error;
      const displayed = displayStatus(run);
      const possible = commandsFor(displayed);
      if (displayed === shownStatus) return;
      shownStatus = displayed;
      replaceChildren(
        buttons,
        ...possible.map(command => {
          const [label, sign, title] = labels[command];
          return button({ label, icon: icon(sign), iconOnly: true, title, onClick: () => events.command(command) });
        }),
        ...(['running', 'paused'].includes(displayed)
          ? [
              button({
                label: 'Change settings…',
                icon: icon('settings'),
                iconOnly: true,
                title: 'Change learning rate, coefficients, temperature, filter or steps from the next step on',
                onClick: () => events.command('settings'),
              }),
            ]
          : []),
        button({
          label: 'Collapse',
          title: 'Check whether the reasoning still depends on the prompt',
          onClick: () => events.command('collapse'),
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
      zoom.hidden = now.zoom === null;
    },
    showControls: shown => void (controls.hidden = !shown),
    offer(axes, tags) {
      for (const option of axis.querySelectorAll<HTMLElement & { value: string }>('vscode-option'))
        setAttribute(option, 'disabled', axes.some(each => each === option.getAttribute('value')) ? null : '');
      tagSlot.hidden = tags.length < 2;
      if (tagSlot.hidden || tagsShown === tags.join('\n')) return;
      tagsShown = tags.join('\n');
      const choice = dropdown({
        label: 'Environment tag',
        choices: [['', 'all tags'], ...tags.map(tag => [tag, tag] as const)],
        value: view.tag ?? '',
        onChange: tag => events.change({ tag: tag === '' ? null : tag }),
      });
      replaceChildren(tagSlot, choice);
    },
    showAlarms(count, newest) {
      alarms.hidden = count === 0;
      setText(alarms, count > 1 ? `▲ ${count} alarms, latest: ${newest}` : `▲ ${newest}`);
    },
    showReadProgress(read) {
      readProgress.hidden = read >= 1;
      setText(
        readProgress,
        `Reading the metrics: ${Math.floor(read * 100)} %. The newest steps are shown until all are read.`,
      );
    },
  };
  return bar;
}

function showFacts(facts: HTMLElement, { status, live }: RunSummary): void {
  const { unit, done, of } = progressOf(status);
  const pairs: [string, string, string][] = [[unit, `${done} / ${of}`, `${unit}s finished of those planned`]];
  if (status.success !== null)
    pairs.push(
      status.success_of === 'val'
        ? ['validation', formatPercent(status.success), 'Success in the newest validation']
        : ['success', formatPercent(status.success), 'Success of the newest training step'],
    );
  if (live && status.eta_s !== null)
    pairs.push(['ETA', formatDuration(status.eta_s), 'Estimated time remaining at the current speed']);
  if (live && status.tokens_per_s !== null)
    pairs.push(['tokens/s', formatNumber(status.tokens_per_s), 'Tokens per second, averaged over the whole step']);
  const texts = pairs.map(pair => pair.join('\n')).join('\n');
  if (facts.dataset.shown === texts) return;
  facts.dataset.shown = texts;
  replaceChildren(
    facts,
    ...pairs.map(([label, value, title]) => h('div', { title }, h('dt', {}, label), h('dd', {}, value))),
  );
}

/** The slider, with its value as text. */
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
    { class: 'smoothing', title: 'Smoothing factor (weight of earlier values); 0 shows the raw values' },
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
