// The column next to the board: how the behaviour differs after a reload of the code, the steps so far, the task, the
// meaning of the symbols, and the configuration.
import { html, nothing, type TemplateResult } from 'lit';
import type { PlaySession } from '../../extension/protocol/environment-tools';
import { stayAtEnd } from '../components/stay-at-end';
import { formatSigned } from '../shared/format';
import { differencesView } from './differences';
import type { PlayActions } from './actions';
import { sideSection } from './side-section';

/**
 * Renders the column. `isNewest` is true if the newest state is displayed; the list of steps then stays scrolled to its
 * end.
 */
export function sideView(
  session: PlaySession,
  viewed: number,
  isNewest: boolean,
  actions: PlayActions,
): TemplateResult {
  const { legend, reloaded, steps } = session;
  return html`${reloaded ? differencesView(reloaded.differences, steps.length) : nothing}
  ${stepsView(session, viewed, isNewest, actions)} ${instructionsView(session, viewed)}
  ${Object.keys(legend).length === 0 ? nothing : sideSection('Legend', pairs('legend', legend))}
  ${sideSection('Configuration', configView(session.config))}`;
}

/**
 * Renders the instruction of the environment or, with roles, that of each role. The role whose turn is next in the
 * displayed state comes first.
 */
function instructionsView(
  { instruction, roles = [], first, steps }: PlaySession,
  viewed: number,
): TemplateResult | typeof nothing | unknown[] {
  const own = roles.filter(role => role.instruction !== undefined);
  const view = (title: string, text: string): TemplateResult | typeof nothing =>
    text === '' ? nothing : sideSection(title, html`<p class="instruction">${text}</p>`);
  const shared = own.length < roles.length || roles.length === 0 ? view('Instruction', instruction) : nothing;
  if (own.length === 0) return shared;
  const { role: next } = viewed > 0 ? steps[viewed - 1] : first;
  const sorted = [...own.filter(({ name }) => name === next), ...own.filter(({ name }) => name !== next)];
  return [...sorted.map(role => view(`Instruction of ${role.name}`, role.instruction!)), shared];
}

function stepsView(session: PlaySession, viewed: number, isNewest: boolean, { view }: PlayActions): TemplateResult {
  const { steps, seed } = session;
  const row = (index: number, content: TemplateResult): TemplateResult =>
    html`<li
      ><button
        class="plain step-row"
        type="button"
        aria-current=${index === viewed ? 'step' : nothing}
        @click=${() => view(index)}
        ><span class="muted">${index}</span>${content}</button
      ></li
    >`;
  const rows = [row(0, html`<span class="step-name">seed ${seed}</span>`)];
  for (const [i, step] of steps.entries()) rows.push(row(i + 1, stepContent(step)));
  const title = `Steps${steps.length > 0 ? ` (${steps.length})` : ''}`;
  return sideSection(
    title,
    html`<ol class="steps" ${stayAtEnd(isNewest, session)}
      >${rows}</ol
    >`,
  );
}

function stepContent({
  name,
  reward,
  terminated,
  truncated,
  info,
  acted,
  earned = {},
}: PlaySession['steps'][number]): TemplateResult {
  const refused =
    info['action_is_valid'] === false ? 'invalid' : info['action_is_effective'] === false ? 'no effect' : '';
  const end = terminated ? 'terminated' : truncated ? 'truncated' : refused;
  const amount = acted === undefined ? reward : (earned[acted] ?? 0);
  const sign = amount < 0 ? 'loss' : amount > 0 ? 'gain' : 'muted';
  const by = acted === undefined ? nothing : html`<span class="muted">${`${acted} `}</span>`;
  const title = acted === undefined ? nothing : amountsByRole(earned);
  return html`<span class="step-name">${by}${name === '' ? '(empty)' : name}</span
    ><span class="muted step-end">${end}</span
    ><span class="reward ${sign}" title=${title}>${formatSigned(amount)}</span>`;
}

/** Returns what the roles earned by a step, such as `first +1.00, second −1.00`. */
const amountsByRole = (earned: Readonly<Record<string, number>>): string =>
  Object.entries(earned)
    .map(([role, amount]) => `${role} ${formatSigned(amount)}`)
    .join(', ');

const configView = (config: PlaySession['config']): TemplateResult =>
  html`<details
    ><summary>${Object.keys(config).length} keys of env_config</summary>${pairs('config', config)}</details
  >`;

/** Renders a list of names and values; values that are not texts are shown as JSON. */
function pairs(name: string, values: Readonly<Record<string, unknown>>): TemplateResult {
  const rows = Object.entries(values).map(
    ([key, value]) => html`<dt>${key}</dt><dd>${typeof value === 'string' ? value : JSON.stringify(value)}</dd>`,
  );
  return html`<dl class=${name}>${rows}</dl>`;
}
