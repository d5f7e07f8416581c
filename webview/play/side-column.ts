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
  const { instruction, legend, reloaded, steps } = session;
  return html`${reloaded ? differencesView(reloaded.differences, steps.length) : nothing}
  ${stepsView(session, viewed, isNewest, actions)}
  ${instruction === '' ? nothing : sideSection('Instruction', html`<p class="instruction">${instruction}</p>`)}
  ${Object.keys(legend).length === 0 ? nothing : sideSection('Legend', pairs('legend', legend))}
  ${sideSection('Configuration', configView(session.config))}`;
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

function stepContent({ name, reward, terminated, truncated, info }: PlaySession['steps'][number]): TemplateResult {
  const refused =
    info['action_is_valid'] === false ? 'invalid' : info['action_is_effective'] === false ? 'no effect' : '';
  const end = terminated ? 'terminated' : truncated ? 'truncated' : refused;
  const sign = reward < 0 ? 'loss' : reward > 0 ? 'gain' : 'muted';
  return html`<span class="step-name">${name === '' ? '(empty)' : name}</span><span class="muted step-end">${end}</span
    ><span class="reward ${sign}">${formatSigned(reward)}</span>`;
}

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
