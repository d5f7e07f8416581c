// The cross-scoring matrix, with the two texts of the selected cell next to it, and a table of the same data.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import { button, link } from '../../components/controls';
import { formatNumber, formatSigned } from '../../shared/format';
import type { CollapseActions } from '../actions';
import { describeCell, type ScoredFamily } from './matrix';
import './matrix-canvas';
import type { CollapseState } from '../state';

export function matrixView(scored: ScoredFamily, state: CollapseState, actions: CollapseActions): TemplateResult {
  const { samples, prompts } = scored.family;
  const aspect = Math.max(0.75, Math.min(2.2, prompts.length / samples.length));
  return html`<div class="matrix">
    <div>
      <matrix-canvas
        class="matrix-field"
        style="aspect-ratio:${aspect}"
        .scored=${scored}
        .cell=${state.cell}
        .theme=${state.theme}
        .onCell=${actions.selectCell}
        .onOpen=${actions.openCell}
      ></matrix-canvas>
      <p class="muted legend">
        ${`${samples.length} reasoning texts (rows) under ${prompts.length} prompts (columns). Outlined: the own prompt of each text. Blue: less likely than under the text’s own prompt; orange: more likely.`}
      </p>
    </div>
    ${cellView(scored, state, actions)}
    <details
      class="matrix-table"
      .open=${state.tableOpen}
      @toggle=${({ currentTarget }: Event) => actions.openTable((currentTarget as HTMLDetailsElement).open)}
    >
      <summary>As a table</summary>
      ${state.tableOpen ? guard([scored], () => rowsTable(scored, actions)) : nothing}
    </details>
  </div>`;
}

function cellView(scored: ScoredFamily, { cell }: CollapseState, actions: CollapseActions): TemplateResult {
  const { family, matrix, prompts } = scored;
  const sample = family.samples[matrix.order[cell.row]] as (typeof family.samples)[number] | undefined;
  const { own, before, after } = prompts[cell.column] ?? { own: '', before: '', after: '' };
  return html`<div class="cell-side">
    <p id="cell-words" class="cell-words" aria-live="polite">${sample ? describeCell(scored, cell) : ''}</p>
    <h4>Reasoning</h4>
    <pre class="cell-text" tabindex="0">${sample?.text}</pre>
    <h4>Prompt (lines that differ between prompts)</h4>
    <pre class="cell-text" tabindex="0">${own}</pre>
    <details class="whole-prompt" ?hidden=${before === '' && after === ''}>
      <summary>Full prompt</summary>
      <pre class="cell-text" tabindex="0">${family.prompts[cell.column]?.text}</pre>
    </details>
    ${button({ label: 'Open the episode', title: 'Enter', onClick: actions.openCell })}
  </div>`;
}

/**
 * Renders one row per reasoning text: the text, its log-prob under its own prompt, and the prompt under which its
 * log-prob is highest.
 */
function rowsTable({ family, matrix }: ScoredFamily, { openEpisode }: CollapseActions): TemplateResult {
  const { order, own, best, against } = matrix;
  const rows = order.map((i, row) => {
    const { episode, text } = family.samples[i];
    const same = family.signatures[best[row]] === family.signatures[own[row]];
    const likely = same ? 'its own' : `${best[row] + 1} (${formatSigned(against[row][best[row]])})`;
    return html`<tr
      ><th scope="row">${link(episode, () => openEpisode(episode))}</th><td class="number">${own[row] + 1}</td
      ><td class="number">${formatNumber(family.log_probs_per_token[i][own[row]])}</td><td class="number">${likely}</td
      ><td class="text">${text}</td></tr
    >`;
  });
  const head = ['Episode', 'Own prompt', 'Log-prob under own prompt', 'Most likely prompt', 'Reasoning'];
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <caption class="visually-hidden"> Reasoning texts of the matrix </caption>
      <thead>
        <tr> ${head.map(text => html`<th scope="col">${text}</th>`)} </tr>
      </thead>
      <tbody> ${rows} </tbody>
    </table>
  </div>`;
}
