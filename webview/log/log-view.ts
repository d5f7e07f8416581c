// Renders the Log page: a bar with level, order and search, the list of entries, and the details of the selected entry.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { LogLevel } from '../../extension/run-data/log-entries';
import { button, dropdown, textField } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { choices, runTitle } from '../components/toolbar';
import '../components/virtual-list';
import { counted } from '../shared/format';
import type { LogActions } from './actions';
import { details, renderItem } from './log-rows';
import { selectedEntry, type LogItem, type LogState, type ViewSettings } from './state';

const rowHeight = 24;

const levels: readonly (readonly [LogLevel, string])[] = [
  ['error', 'Errors'],
  ['warning', 'Warnings and errors'],
  ['info', 'Information'],
  ['debug', 'Everything'],
];

const orders: { value: ViewSettings['order']; label: string; title: string }[] = [
  { value: 'steps', label: 'By step', title: 'Newest first, under the step' },
  { value: 'severity', label: 'Errors first', title: 'Errors, then warnings, then the rest; newest first' },
];

export function logView(state: LogState, actions: LogActions): TemplateResult {
  const { failure, run } = state;
  if (failure !== null)
    return notice({
      kind: 'error',
      title: 'The log could not be read',
      text: failure,
      action: { label: 'Try again', run: actions.load },
    });
  if (!run) return skeleton('skeleton-rows', 14, 'Loading the log');
  const entry = selectedEntry(state);
  return html`<div class="log">
    ${topBar(run, state, actions)} ${state.entries.length === 0 ? emptyView(run, actions) : listView(state, actions)}
    ${entry ? details(entry, actions) : nothing}
  </div>`;
}

function topBar(run: RunSummary, state: LogState, actions: LogActions): TemplateResult {
  const { settings, search, list, cut, entries } = state;
  const found = Array.from({ length: list.length }, (_, i) => list.at(i)).filter(({ kind }) => kind === 'entry').length;
  const part = cut.length > 0 ? ` · only the newest part of ${cut.join(', ')} is listed` : '';
  return html`<header class="log-bar">
    <div class="bar-row">
      ${runTitle(run, run.id)}
      <div class="buttons">
        ${button({ label: 'Dashboard', onClick: () => actions.command({ command: 'dashboard' }) })}
        ${button({ label: 'Episodes', onClick: () => actions.command({ command: 'episodes' }) })}
      </div>
    </div>
    <div class="bar-row">
      ${choices('Order', orders, settings.order, order => actions.change({ order }))}
      ${dropdown({
        label: 'Level',
        choices: levels,
        value: settings.level,
        onChange: level => actions.change({ level }),
      })}
      ${textField({
        label: 'Search the log',
        placeholder: 'Search the log',
        class: 'search',
        title: 'Words of the text, a kind such as alarm, or step 12 ( / )',
        value: search,
        onInput: actions.search,
      })}
      <span class="muted count" role="status"
        >${found === entries.length ? counted(found, 'line') : `${found} of ${counted(entries.length, 'line')}`}${part}</span
      >
    </div>
  </header>`;
}

function listView(
  { list, selected, settings: { order }, search, settings }: LogState,
  actions: LogActions,
): TemplateResult {
  if (list.length === 0)
    return notice({
      kind: 'empty',
      title: 'No line matches',
      text: 'Change the search, or list further levels.',
      action: {
        label: search === '' && settings.level !== 'debug' ? 'List everything' : 'Clear the search',
        run: () => (search === '' ? actions.change({ level: 'debug' }) : actions.search('')),
      },
    });
  return html`<virtual-list
    class="list"
    aria-label="Log"
    .rowHeight=${rowHeight}
    .renderRow=${guard([order], () => (item: LogItem) => renderItem(item, order))}
    .source=${list}
    .selected=${selected}
    .onChoose=${(item: LogItem) => actions.select(item.key)}
  ></virtual-list>`;
}

const emptyView = (run: RunSummary, actions: LogActions): TemplateResult =>
  notice({
    kind: 'empty',
    title: 'The log is empty',
    text: run.live
      ? 'The trainer is starting. Its first lines appear here.'
      : 'The run’s folder contains neither events nor output of the trainer.',
    action: { label: 'Open the dashboard', run: () => actions.command({ command: 'dashboard' }) },
  });
