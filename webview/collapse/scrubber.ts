// The step control of the page: a slider over the run's steps, a play button, and a button that makes the page follow
// the newest step.
import { html, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { button } from '../components/controls';
import type { CollapseActions } from './actions';
import type { CollapseState, Position } from './state';

export function scrubber(state: CollapseState, position: Position, actions: CollapseActions): TemplateResult {
  const { steps } = state.series;
  const { step } = position;
  const onInput = ({ currentTarget }: Event): void =>
    actions.scrub(steps[Number((currentTarget as HTMLInputElement).value)] ?? null);
  return html`<div class="scrubber">
    ${button({
      label: 'Previous diagnosis',
      icon: 'left',
      iconOnly: true,
      title: 'Previous diagnosis (←)',
      onClick: () => actions.move(-1),
    })}
    ${button({
      label: state.playing ? 'Pause' : 'Play',
      icon: state.playing ? 'pause' : 'play',
      iconOnly: true,
      title: 'Play through the diagnoses (space)',
      onClick: actions.togglePlay,
    })}
    ${button({
      label: 'Next diagnosis',
      icon: 'right',
      iconOnly: true,
      title: 'Next diagnosis (→)',
      onClick: () => actions.move(1),
    })}
    <input
      type="range"
      min="0"
      max=${Math.max(0, steps.length - 1)}
      step="1"
      aria-label="Step"
      aria-valuetext="step ${step}"
      .value=${live(String(Math.max(0, steps.indexOf(step))))}
      @input=${onInput}
    />
    <output class="where">${whereLabel(state, position)}</output>
    ${button({
      label: 'Newest',
      title: 'Follow the newest step (End)',
      pressed: position.live,
      onClick: () => actions.scrub(null),
    })}
  </div>`;
}

/** Returns the label of the selected step: `step 45 of 90 · diagnosed at 44`. */
function whereLabel({ series, diagnoses }: CollapseState, { step, present }: Position): string {
  const diagnosed = diagnoses.stops.at(present);
  const about = present >= 0 && diagnosed !== step ? ` · diagnosed at ${diagnosed}` : '';
  return `step ${step} of ${series.steps.at(-1) ?? 0}${about}`;
}
