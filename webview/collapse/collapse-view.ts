// Renders the Collapse page: the plane on top with the diagnosis next to it, the other parts below. All parts show the
// same step.
import type { CollapseActions } from './actions';
import { html, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { notice, skeleton } from '../components/notice';
import { alarmList } from './interpretation/alarm-list';
import { signalCharts, type LineChartSpec } from './trends/trend-charts';
import { circumstancesAt, evidenceUpTo } from '../../extension/run-data/interpretation/evidence';
import { interpret } from '../../extension/run-data/interpretation/interpretation';
import { interpretationView } from './interpretation/interpretation-view';
import './trends/line-chart';
import './plane/plane';
import { isDiagnosable, positionOf, type CollapseState, type Position, type RunFacts } from './state';
import { stepFiles } from './step/step-files';
import { missingFamily, storedThoughts } from '../../extension/run-data/interpretation/missing-family';
import { missingNotice } from './switched-off';
import { topBar } from './top-bar';

export function collapseView(state: CollapseState, actions: CollapseActions): TemplateResult {
  const { failure, facts, series } = state;
  if (failure !== null) {
    const again = { label: 'Try again', run: actions.load };
    return notice({ kind: 'error', title: 'The run could not be read', text: failure, action: again });
  }
  if (!facts) return skeleton('skeleton-collapse', 4, 'Loading the diagnoses');
  if (!isDiagnosable(facts, series)) return emptyView(facts, actions);
  const position = positionOf(state);
  const { step } = position;
  const { events, settings } = facts;
  return html`${topBar(facts, state, position, actions)}
    <main class="collapse-body">
      ${hero(state, facts, position, actions)}
      ${section('Over training', charts(state, facts, state.diagnoses.charts, step, actions))}
      ${stepFiles(state, facts, step, actions)}
      ${section('Echo Trap signals, with alarm thresholds', charts(state, facts, signalCharts, step, actions))}
      ${section(
        'Alarms',
        guard([events, step], () => alarmList(events, step, settings.watch, actions.go)),
      )}
    </main>`;
}

function hero(state: CollapseState, facts: RunFacts, position: Position, actions: CollapseActions): TemplateResult {
  const { diagnoses, settings } = state;
  const { step, present } = position;
  const { path, evidence } = diagnoses;
  const missing = missingFamily(facts.settings, settings.family, storedThoughts(state.series));
  const plane = html`<run-plane .path=${path} .present=${present} .onStep=${actions.go}></run-plane>`;
  const interpretation = guard([diagnoses, facts.settings, facts.events, facts.checkpoints, step], () =>
    interpretationView(interpret(evidenceUpTo(evidence, step, circumstancesAt(facts, step, settings.family))), actions),
  );
  return html`<div class="hero">
    <div class="hero-place"> ${path.length > 0 ? plane : missingNotice(missing, actions)} </div>
    ${interpretation}
  </div>`;
}

function charts(
  { series, version }: CollapseState,
  { meanings }: RunFacts,
  specs: readonly LineChartSpec[],
  step: number,
  { go }: CollapseActions,
): TemplateResult {
  const elements = specs.map(
    spec =>
      html`<line-chart
        .spec=${spec}
        .series=${series}
        .version=${version}
        .meanings=${meanings}
        .step=${step}
        .onStep=${go}
      ></line-chart>`,
  );
  return html`<div class="small-charts">${elements}</div>`;
}

const section = (title: string, content: unknown): TemplateResult =>
  html`<section class="part">
    <h2>${title}</h2>
    ${content}
  </section>`;

function emptyView({ run }: RunFacts, { command }: CollapseActions): TemplateResult {
  const { episodes, error, phase, state } = run.status;
  const text = episodes
    ? 'Collapse occurs during training, and this run is an evaluation. The Episodes page shows its episodes; the Collapse page of the run that trained the model shows the diagnoses.'
    : run.live
      ? `${run.name} is running (${phase || state}). The first diagnosis appears after step 1.`
      : (error ?? 'The run ended before its first step was finished.');
  return notice({
    kind: error && !episodes ? 'error' : 'empty',
    title: episodes ? 'Nothing to diagnose' : 'No step has finished yet',
    text,
    action: { label: 'Open the dashboard', run: () => command('dashboard') },
  });
}
