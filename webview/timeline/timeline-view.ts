// Renders the Timeline page: the overview of all steps, or one step with the details of the selected span.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { TimelineFacts } from '../../extension/protocol/timeline-page';
import { laneLabels } from '../../extension/run-data/chrome-trace';
import { notice, skeleton } from '../components/notice';
import { formatDuration } from '../shared/format';
import type { TimelineActions } from './actions';
import { laneColour } from './lane-colours';
import { totals } from './overview-bars';
import { describeSpan, spanDetails } from './span-details';
import { overviewRange, type TimelineState } from './state';
import { describeStep } from './step-bars';
import './step-canvas';
import { overviewTable, stepTable } from './tables';
import { topBar } from './top-bar';

export function timelineView(state: TimelineState, actions: TimelineActions): TemplateResult {
  const { failure, facts, refusal, settings } = state;
  if (failure !== null) {
    const again = { label: 'Try again', run: actions.load };
    return notice({ kind: 'error', title: 'The run could not be read', text: failure, action: again });
  }
  if (!facts) return skeleton('skeleton-timeline', 3, 'Loading the timeline');
  const close = { label: 'Close', run: actions.dismiss };
  return html`<div class="timeline">
    ${topBar(facts, state, actions)}
    ${refusal === null ? nothing : notice({ kind: 'error', title: 'The trace was not written', text: refusal, action: close })}
    ${settings.step === null ? overview(facts, state, actions) : step(facts, state, actions)}
  </div>`;
}

function overview(facts: TimelineFacts, state: TimelineState, actions: TimelineActions): TemplateResult {
  const { steps, marked, settings, theme } = state;
  if (steps.length === 0) return emptyView(facts, actions);
  const range = overviewRange(state);
  const kept = new Set(facts.kept);
  const open = (step: number): void => actions.open(step);
  const bars = html`<step-bars
    .steps=${steps}
    .range=${range}
    .marked=${marked}
    .kept=${kept}
    .theme=${theme}
    .onMark=${actions.mark}
    .onOpen=${open}
    .onZoom=${actions.zoomSteps}
  ></step-bars>`;
  return html`<main class="overview">
    ${guard([steps, range, theme], () => legend(state))}
    ${settings.table ? overviewTable(steps, range, kept, open) : bars}
    <p class="status-line" id="marked-step" role="status">${steps[marked] ? describeStep(steps[marked]) : ''}</p>
  </main>`;
}

/**
 * Renders the legend of the overview. For each lane, it shows the colour, the seconds that the visible steps spent in
 * this lane, and the share of these seconds in the total.
 */
function legend(state: TimelineState): TemplateResult {
  const found = totals(state.steps, overviewRange(state));
  const all = found.reduce((sum, { seconds }) => sum + seconds, 0);
  return html`<ul class="legend" aria-label="Time per lane">
    ${found.map(
      ({ lane, seconds }) =>
        html`<li>
          <span class="swatch" style="background: ${laneColour(lane, state.theme)}" aria-hidden="true"></span>
          ${lane === 'phases' ? 'Other phases' : laneLabels[lane]}
          <span class="muted">${formatDuration(seconds)} · ${Math.round((seconds / all) * 100)} %</span>
        </li>`,
    )}
  </ul>`;
}

function step(facts: TimelineFacts, state: TimelineState, actions: TimelineActions): TemplateResult {
  const { open, waiting, settings, theme } = state;
  if (typeof waiting === 'object' && waiting !== null)
    return notice({
      kind: 'error',
      title: 'The step could not be read',
      text: waiting.failed,
      action: { label: 'Back to the overview', run: () => actions.open(null) },
    });
  if (waiting === 'missing') return missingView(facts, settings.step, actions);
  if (!open) return skeleton('skeleton-timeline', 3, 'Loading the step');
  const drawing = html`<step-canvas
    .open=${open}
    .theme=${theme}
    .onZoom=${actions.zoom}
    .onSelect=${actions.select}
  ></step-canvas>`;
  return html`<main class="step">
    ${settings.table ? stepTable(open, actions.select) : drawing} ${spanDetails(open, actions)}
    <p class="visually-hidden" id="selected-span" role="status">${describeSpan(open)}</p>
  </main>`;
}

function missingView(
  { kept }: TimelineFacts,
  step: TimelineState['settings']['step'],
  actions: TimelineActions,
): TemplateResult {
  const wanted = typeof step === 'number' ? step : Infinity;
  const nearest = kept.reduce<number | null>(
    (best, at) => (best === null || Math.abs(at - wanted) < Math.abs(best - wanted) ? at : best),
    null,
  );
  return notice({
    kind: 'empty',
    title: step === 'current' ? 'No step is in progress' : `The calls of step ${step} are not kept`,
    text:
      step === 'current'
        ? 'The spans of a step appear here while the step runs, at the earliest two seconds after its beginning.'
        : 'The timeline keeps single calls and episodes of the newest steps and of every k-th step (workbench.timeline_steps, workbench.timeline_every). The overview shows all steps.',
    action:
      nearest === null
        ? { label: 'Back to the overview', run: () => actions.open(null) }
        : { label: `Open step ${nearest}`, run: () => actions.open(nearest) },
  });
}

function emptyView({ run, current }: TimelineFacts, actions: TimelineActions): TemplateResult {
  const waiting = `${run.name} is running (${run.status.phase || run.status.state}). A step appears here when it ends.`;
  if (run.live && current !== '')
    return notice({
      kind: 'empty',
      title: 'No step has ended yet',
      text: waiting,
      action: { label: 'Show the step in progress', run: () => actions.follow(true) },
    });
  return notice({
    kind: 'empty',
    title: run.live ? 'No step has ended yet' : 'This run has no timeline',
    text: run.live
      ? waiting
      : 'Its trainer’s version recorded no timelines, the run ended before its first step, or its timeline folder was deleted. The dashboard shows the seconds per phase (timing_s).',
    action: { label: 'Open the dashboard', run: () => actions.command('dashboard') },
  });
}
