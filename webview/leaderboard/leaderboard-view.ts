// Renders the Leaderboard page: a table of models by environments, and further tables for evaluations with other
// settings. The bar behind a success shows its 95 % interval.
import { html, nothing, type TemplateResult } from 'lit';
import type { LeaderboardSnapshot } from '../../extension/protocol/leaderboard-page';
import type { EvaluatedSuccess } from '../../extension/run-data/evaluation-file';
import type { LeaderboardTable } from '../../extension/run-data/leaderboard';
import { leaderboardTexts } from '../../extension/run-data/leaderboard-texts';
import { button } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { counted } from '../shared/format';

export interface LeaderboardState {
  readonly snapshot: LeaderboardSnapshot | null;
  /** The last failure; null after a success. */
  readonly error: string | null;
}

export interface LeaderboardActions {
  load(): void;
  /** Opens the dashboard of a run. */
  open(folder: string): void;
  save(format: 'csv' | 'md'): void;
}

export function leaderboardView({ snapshot, error }: LeaderboardState, actions: LeaderboardActions): TemplateResult {
  if (!snapshot)
    return error === null
      ? skeleton('skeleton-leaderboard', 1, 'Loading the evaluations')
      : notice({
          ...{ kind: 'error', title: 'The evaluations could not be read', text: error },
          action: { label: 'Try again', run: actions.load },
        });
  const { tables, notes } = snapshot;
  if (tables.length === 0)
    return notice({
      kind: 'empty',
      title: 'No evaluations yet',
      text: 'This workspace has no finished evaluation: evaluate a run (Evaluate… in its menu) or a model (ragen eval).',
      action: { label: 'Read again', run: actions.load },
    });
  const count = tables.reduce((sum, { rows }) => sum + rows.length, 0);
  return html`<main class="leaderboard">
    <header class="leaderboard-bar">
      <h1>Leaderboard</h1>
      <span class="muted">${counted(count, 'evaluation')}</span>
      ${button({ label: 'Refresh', onClick: actions.load })}
      ${button({ label: 'Save as CSV', onClick: () => actions.save('csv') })}
      ${button({ label: 'Save as Markdown', onClick: () => actions.save('md') })}
    </header>
    ${error === null ? nothing : html`<p role="alert" class="warning">${error}</p>`}
    <p class="muted">
      Success with its 95 % interval (Wilson). Disjoint intervals show a difference; overlapping ones leave it open.
    </p>
    ${tables.map((table, i) => tableSection(table, i, snapshot, actions))}
    ${notes.map(note => html`<p class="muted">${note}</p>`)}
  </main>`;
}

function tableSection(
  table: LeaderboardTable,
  index: number,
  { folders }: LeaderboardSnapshot,
  actions: LeaderboardActions,
): TemplateResult {
  const { tags, rows, differences } = table;
  const { heads, rows: texts } = leaderboardTexts(table);
  const title = index === 0 ? 'Same episodes, seeds and settings' : 'Other settings than the first table';
  const shares = [...tags, ...(tags.length > 1 ? [null] : [])];
  const body = rows.map((row, r) => {
    const cells = texts[r].slice(1, -1).map((text, i) => {
      const tag = shares[i];
      const value = i >= shares.length ? undefined : tag === null ? row.overall : row.success[tag];
      return html`<td class="number">${value ? successCell(text, value) : text}</td>`;
    });
    const folder = folders[row.run];
    const run = folder === undefined ? row.name : runLink(row.name, row.run, () => actions.open(folder));
    return html`<tr><th scope="row">${row.model}</th>${cells}<td>${run}</td></tr>`;
  });
  return html`<section aria-label=${title}>
    <h2>${title}</h2>
    ${
      differences.length === 0
        ? nothing
        : html`<ul class="muted"
            >${differences.map(text => html`<li>${text}</li>`)}</ul
          >`
    }
    <div class="leaderboard-table" tabindex="0" role="region" aria-label=${title}>
      <table>
        <thead>
          <tr
            >${heads.map((head, i) => html`<th scope="col" class=${i > 0 && i < heads.length - 1 ? 'number' : nothing}>${head}</th>`)}</tr
          >
        </thead>
        <tbody>${body}</tbody>
      </table>
    </div>
  </section>`;
}

const runLink = (name: string, id: string, open: () => void): TemplateResult =>
  html`<button class="plain link" type="button" title=${id} @click=${open}>${name}</button>`;

function successCell(text: string, { success }: EvaluatedSuccess): TemplateResult | string {
  if (!success) return text;
  const { low, mean, high } = success;
  const percent = (share: number): string => `${(share * 100).toFixed(1)}%`;
  return html`<span>${text}</span
    ><span class="interval" aria-hidden="true"
      ><span style="left:${percent(low)};width:${percent(high - low)}"></span><i style="left:${percent(mean)}"></i
    ></span>`;
}
