// The header of the episode list: run, step, kind of episodes, sort order, filter, and a summary of the matches.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { RunSummary } from '../../../extension/protocol/page-state';
import { button, dropdown, textField } from '../../components/controls';
import { leftOutNote } from '../../components/left-out';
import { runSwatch } from '../../components/run-swatch';
import { statusDot } from '../../components/status-dot';
import type { EpisodesActions } from '../actions';
import { sortColumns, type Sort, type SortColumn } from './listing';
import { listedMode, type Mode } from '../episodes-settings';
import { listFacts, listProblems, type EpisodesState } from '../state';
import { stepAtTop } from './step-navigation';

const filterHelp =
  'Examples: success:false  score<0  return>=1  text:"stuck"  step:40..60  group:3  member:0  seed:10144  turns:5  tokens>200  invalid>0  tag:sokoban  mode:val  kept:false  -text:wall  ( / )';

const modeNames: Record<Mode, string> = { train: 'Training', val: 'Validation', all: 'All' };

export function sideBar(run: RunSummary, state: EpisodesState, actions: EpisodesActions): TemplateResult {
  const problems = listProblems(state);
  return html`<header class="side-head">
    <div class="side-title">${runSwatch(run)}<h1 title=${run.id}>${run.name}</h1>${statusDot(run)}</div>
    ${textField({
      label: 'Filter episodes',
      placeholder: 'success:false score<0',
      class: 'filter',
      title: filterHelp,
      value: state.settings.filter,
      onInput: actions.filter,
    })}
    ${leftOutNote(run)}
    <p class="filter-problem" role="alert" ?hidden=${problems === ''}>${problems}</p>
    <div class="side-tools">${stepsView(state, actions)}${choicesView(state, actions)}</div>
    <div class="list-summary"
      ><p class="muted list-facts" role="status">${listFacts(state)}</p>${button({
        ...{ label: 'Export data set…', title: 'Export the listed episodes for fine-tuning or as trajectories' },
        ...{ disabled: (state.matches?.listing.rows.length ?? 0) === 0, onClick: actions.exportDataSet },
      })}</div
    >
  </header>`;
}

/** Renders the step at the top of the list, between buttons for the previous, next and newest step. */
function stepsView(state: EpisodesState, { goStep }: EpisodesActions): TemplateResult {
  const at = stepAtTop(state);
  const step = at === null ? '' : `${at.mode === 'val' ? 'validation' : 'step'} ${at.step}`;
  const go = (label: string, icon: 'left' | 'right' | 'newest', by: -1 | 0 | 1, disabled = false): TemplateResult =>
    button({ label, icon, iconOnly: true, disabled, onClick: () => goStep(by) });
  return html`<div class="steps" ?hidden=${state.settings.sort !== null}>
    ${go('Previous step ( [ )', 'left', -1)}
    <strong class="step-name">${step}</strong>
    ${go('Next step ( ] )', 'right', 1)} ${go('Newest step', 'newest', 0, state.top === 0)}
  </div>`;
}

/** Renders the choices of mode and order; the mode is hidden if the filter line sets it. */
function choicesView({ data, query, settings }: EpisodesState, actions: EpisodesActions): TemplateResult {
  const { modes } = data;
  const mode = listedMode(data, settings);
  const isFixed = modes.length < 2 || query?.namesMode === true;
  const modeChoice = (): TemplateResult =>
    dropdown({
      label: 'Episodes of',
      choices: modes.map(each => [each, modeNames[each]] as const),
      value: mode,
      onChange: actions.mode,
    });
  const { sort } = settings;
  return html`<div class="choices">
    ${isFixed ? nothing : guard([modes.join(), mode], modeChoice)} ${guard([sort], () => orderChoice(sort, actions))}
  </div>`;
}

function orderChoice(sort: Sort | null, { sortFromStart }: EpisodesActions): TemplateResult {
  const columns = Object.entries(sortColumns) as [SortColumn, string][];
  return dropdown<SortColumn | 'natural'>({
    label: 'Order',
    choices: [['natural', 'by step'], ...columns.map(([by, text]) => [by, `by ${text}`] as const)],
    value: sort?.by ?? 'natural',
    onChange: by =>
      sortFromStart(by === 'natural' ? null : { by, down: by !== 'step' && by !== 'tag' && by !== 'group' }),
  });
}
