// The bar above the charts: name and status of the run, buttons for its commands, and display settings.
import { html, nothing, type TemplateResult } from 'lit';
import { gibibytes } from '../../extension/common/numbers';
import type { PlannedMemory } from '../../extension/run-data/memory-shortage';
import { isUnended } from '../../extension/run-data/run-progress';
import type { RunSummary } from '../../extension/protocol/page-state';
import { button, dropdown, textField } from '../components/controls';
import type { IconName } from '../components/icon';
import { runTitle, smoothingSlider } from '../components/toolbar';
import { commandsFor, displayStatus } from '../shared/run-status';
import { tagsOf } from '../../extension/run-data/charts/catalogue';
import type { DashboardActions } from './actions';
import type { DashboardCommand } from './actions';
import { progressBar, runFacts } from './run/run-facts';
import { axesOf } from '../charts/metric-series';
import { alarmsOf, shortageIn, type DashboardState } from './state';

const labels: Record<'pause' | 'resume' | 'stop', [label: string, icon: IconName, title: string]> = {
  pause: ['Pause', 'pause', 'Pause after the current step'],
  resume: ['Resume', 'play', 'Continue the run from where it paused, or from its last checkpoint'],
  stop: ['Stop', 'stop', 'Stop the run and save a checkpoint of its last finished step'],
};

const axisChoices = [
  ['step', 'by step'],
  ['time', 'by time'],
  ['episodes', 'by episodes'],
] as const;

export function topBar(run: RunSummary, state: DashboardState, actions: DashboardActions): TemplateResult {
  const { error } = run.status;
  const alarms = alarmsOf(state.events);
  const newest = alarms.at(-1);
  const shortage = isUnended(run.status.state) ? shortageIn(state.events) : null;
  const alarmText =
    alarms.length > 1 ? `▲ ${alarms.length} alarms, latest: ${newest?.message}` : `▲ ${newest?.message}`;
  const reading = `Reading the metrics: ${Math.floor(state.read * 100)} %. Until then, only the newest steps are shown.`;
  return html`<header class="top-bar">
    <div class="top-row">
      ${runTitle(run, `${run.id} · ${run.config_name} · started ${run.created}`)} ${runFacts(run)}
      <div class="buttons">${commandButtons(run, actions.command)}</div>
    </div>
    ${progressBar(run)}
    <p class="run-error" role="alert" ?hidden=${!error}>${error ?? ''}</p>
    <p class="memory-warning" role="status" ?hidden=${!shortage}>${shortage ? memoryWarning(shortage) : ''}</p>
    <button class="plain alarms" type="button" ?hidden=${!newest} @click=${() => newest && actions.openEvent(newest)}
      >${newest ? alarmText : ''}</button
    >
    <p class="muted reading" role="status" ?hidden=${state.read >= 1}>${reading}</p>
    ${controls(run, state, actions)}
  </header>`;
}

const memoryWarning = ({ planned, available, phase }: PlannedMemory): string =>
  `▲ Memory: the run may need ${gibibytes(planned)} in its ${phase}, but ${gibibytes(available)} was available at its start`;

/** Renders the buttons for the commands available in the run's status, and for the run's other pages. */
function commandButtons(run: RunSummary, send: (command: DashboardCommand) => void): TemplateResult {
  const displayed = displayStatus(run);
  const commands = (run.trainer ? [] : commandsFor(displayed)).map(command => {
    const [label, icon, title] = labels[command];
    return button({ label, icon, iconOnly: true, title, onClick: () => send(command) });
  });
  const settings = button({
    label: 'Change settings…',
    icon: 'settings',
    iconOnly: true,
    title: 'Change learning rate, coefficients, temperature, filter or number of steps, from the next step on',
    onClick: () => send('settings'),
  });
  const timeline = button({
    label: 'Timeline',
    title: 'See where the time of each step goes',
    onClick: () => send('timeline'),
  });
  return html`${commands}${['running', 'paused'].includes(displayed) && !run.trainer ? settings : nothing}${button({
    label: 'Collapse',
    title: 'Check whether the reasoning still depends on the prompt',
    onClick: () => send('collapse'),
  })}${run.trainer ? nothing : timeline}${button({ label: 'Log', title: 'Read what the run reported, by step or with errors first', onClick: () => send('log') })}${button(
    {
      label: 'Episodes',
      primary: true,
      title: 'Read the episodes of this run',
      onClick: () => send('episodes'),
    },
  )}`;
}

/** Renders the display settings of the charts; hidden while there are no charts. */
function controls(
  run: RunSummary,
  state: DashboardState,
  { change, search, exportShown, editPanel }: DashboardActions,
): TemplateResult {
  const { settings, series, episodes } = state;
  const axes = axesOf(series.keys, episodes.train);
  const tags = tagsOf(series.keys);
  const tagChoice = dropdown({
    label: 'Environment tag',
    choices: [['', 'all tags'], ...tags.map((tag): [string, string] => [tag, tag])],
    value: settings.tag ?? '',
    onChange: tag => change({ tag: tag === '' ? null : tag }),
  });
  return html`<div class="top-row controls" ?hidden=${series.rows === 0 || Boolean(run.status.episodes)}>
    ${textField({
      label: 'Search metrics',
      value: state.search,
      placeholder: 'Search metrics',
      class: 'search',
      title: 'Name or key of a metric ( / )',
      onInput: search,
    })}
    ${smoothingSlider({
      value: settings.smoothing,
      title: 'Smoothing factor (weight of earlier values); 0 shows the raw values',
      withValue: true,
      onChange: smoothing => change({ smoothing }),
    })}
    ${dropdown({
      label: 'X axis',
      choices: axisChoices,
      value: settings.axis,
      disabled: axisChoices.map(([axis]) => axis).filter(axis => !axes.includes(axis)),
      onChange: axis => change({ axis, zoom: null }),
    })}
    <span ?hidden=${tags.length < 2}>${tags.length < 2 ? nothing : tagChoice}</span>
    <span class="tools">
      ${button({
        label: 'Table view',
        icon: 'table',
        iconOnly: true,
        pressed: settings.table,
        onClick: () => change({ table: !settings.table }),
      })}
      ${button({ label: 'Export the displayed metrics as CSV', icon: 'export', iconOnly: true, onClick: exportShown })}
      ${button({ label: 'New chart…', icon: 'add', iconOnly: true, onClick: () => editPanel(null) })}
    </span>
    ${button({
      label: 'All steps',
      title: 'Show all steps again ( 0 )',
      hidden: settings.zoom === null,
      onClick: () => change({ zoom: null }),
    })}
  </div>`;
}
