// The outcome of the action that led to the displayed state: reward, return, end of the episode, values reported by the
// environment, and the solver's hint.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlayedRole, PlayedStep, PlaySession } from '../../extension/protocol/environment-tools';
import { link } from '../components/controls';
import { formatNumber, formatSigned } from '../shared/format';
import type { PlayActions } from './actions';

export function outcomeView(session: PlaySession, viewed: number, actions: PlayActions): TemplateResult {
  const { steps } = session;
  const step = viewed > 0 ? steps[viewed - 1] : undefined;
  const played = steps.slice(0, viewed);
  const total = played.reduce((sum, { reward }) => sum + reward, 0);
  const { role } = step ?? session.first;
  const end = step?.terminated ? 'Terminated' : step?.truncated ? 'Truncated' : undefined;
  const success = step?.info['success'];
  const endClass = success === true ? 'end success' : success === false ? 'end missed' : 'end';
  const amount = (label: string, value: number): TemplateResult =>
    html`<span>${label} <strong>${formatSigned(value)}</strong></span>`;
  return html`<p class="outcome-line">
      ${viewed < steps.length ? pastNote(viewed, steps.length, actions) : nothing}
      ${role === undefined ? nothing : html`<span class="turn-of">Turn of <strong>${role}</strong></span>`}
      ${
        session.roles
          ? roleAmounts(session.roles, step, played)
          : html`${step ? amount('reward', step.reward) : nothing} ${amount('return', total)}`
      }
      ${end === undefined ? nothing : html`<span class=${endClass}>${end}</span>`}
      ${Object.entries(step?.info ?? {}).map(([key, value]) => factView(key, value))}
    </p>
    ${session.hint === undefined ? nothing : hintView(session.hint)}`;
}

/** Renders the return of each role; the tooltip says what the role earned by the last step. */
function roleAmounts(
  roles: readonly PlayedRole[],
  step: PlayedStep | undefined,
  played: readonly PlayedStep[],
): TemplateResult[] {
  return roles.map(({ name }) => {
    const total = played.reduce((sum, { earned }) => sum + (earned?.[name] ?? 0), 0);
    const last = step?.earned?.[name] ?? 0;
    const gain = last === 0 ? nothing : html` <span class="muted">(${formatSigned(last)})</span>`;
    const title = step ? `Return of ${name}; reward of the last step ${formatSigned(last)}` : `Return of ${name}`;
    return html`<span class="role-return" title=${title}
      >return of ${name} <strong>${formatSigned(total)}</strong>${gain}</span
    >`;
  });
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
