// The outcome of the action that led to the displayed state: reward, return, end of the episode, values reported by the
// environment, and the solver's hint.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlaySession } from '../../extension/protocol/environment-tools';
import { link } from '../components/controls';
import { formatNumber, formatSigned } from '../shared/format';
import type { PlayActions } from './actions';

export function outcomeView(session: PlaySession, viewed: number, actions: PlayActions): TemplateResult {
  const { steps } = session;
  const step = viewed > 0 ? steps[viewed - 1] : undefined;
  const total = steps.slice(0, viewed).reduce((sum, { reward }) => sum + reward, 0);
  const end = step?.terminated ? 'Terminated' : step?.truncated ? 'Truncated' : undefined;
  const success = step?.info['success'];
  const endClass = success === true ? 'end success' : success === false ? 'end missed' : 'end';
  const amount = (label: string, value: number): TemplateResult =>
    html`<span>${label} <strong>${formatSigned(value)}</strong></span>`;
  return html`<p class="outcome-line">
      ${viewed < steps.length ? pastNote(viewed, steps.length, actions) : nothing}
      ${step ? amount('reward', step.reward) : nothing} ${amount('return', total)}
      ${end === undefined ? nothing : html`<span class=${endClass}>${end}</span>`}
      ${Object.entries(step?.info ?? {}).map(([key, value]) => factView(key, value))}
    </p>
    ${session.hint === undefined ? nothing : hintView(session.hint)}`;
}

const pastNote = (viewed: number, steps: number, { view }: PlayActions): TemplateResult =>
  html`<span class="past"
    >After step ${viewed} of ${steps} ${link('back to the newest step', () => view(steps))}</span
  >`;

const factView = (key: string, value: unknown): TemplateResult =>
  html`<span class="fact"
    ><span class="muted">${`${key} `}</span>${
      typeof value === 'number' ? formatNumber(value) : JSON.stringify(value)
    }</span
  >`;

function hintView(hint: readonly string[] | null): TemplateResult {
  const text = hint === null ? 'finds no solution from this state' : hint.join(' · ') || 'proposes no further action';
  return html`<p class="hint"><span class="muted">Solver </span>${text}</p>`;
}
