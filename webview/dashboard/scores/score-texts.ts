// Texts of the score distribution: the most frequent scores in the chart's header, and the table that can replace the
// drawing.
import { html, nothing, type TemplateResult } from 'lit';
import { maximum } from '../../../extension/common/lists';
import { scoreColumn, type ScoreStrip } from '../../../extension/protocol/dashboard-page';
import { formatNumber, formatPercent } from '../../shared/format';
import type { LoadedScores } from './score-loader';

/**
 * Renders, for each tag, the most frequent score in the column that contains `step`. If `step` is null, the latest
 * column is used.
 */
export function scoreValues({ strips, from, to }: LoadedScores, step: number | null): TemplateResult[] {
  return strips.map(strip => {
    const at = step === null ? strip.columns - 1 : scoreColumn(step, from, to, strip.columns);
    const column = strip.counts.subarray(at * strip.bins, (at + 1) * strip.bins);
    const total = column.reduce((sum, count) => sum + count, 0);
    const most = column.indexOf(maximum(column));
    const isSingle = strip.lowest[most] === strip.highest[most];
    const text = `${formatPercent(column[most] / total)} ${isSingle ? 'at' : 'in'} ${scoresIn(strip, most)}`;
    const tag = strips.length > 1 ? html`<span class="muted">${strip.tag}</span>` : nothing;
    return html`<span class="chart-value">${tag}<strong>${total > 0 ? text : '–'}</strong></span>`;
  });
}

/** Renders a table with the number of episodes for each score, over all visible steps and in the latest column. */
export function scoreTable({ strips, from, to }: LoadedScores): TemplateResult {
  const rows = strips.flatMap(strip =>
    Array.from({ length: strip.bins }, (_, i) => strip.bins - 1 - i).flatMap(bin => {
      const counts = Array.from({ length: strip.columns }, (_, column) => strip.counts[column * strip.bins + bin]);
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (total === 0) return [];
      const label = `${strips.length > 1 ? `${strip.tag} ` : ''}${scoresIn(strip, bin)}`;
      return html`<tr><th scope="row">${label}</th><td>${total}</td><td>${counts.at(-1)}</td></tr>`;
    }),
  );
  const heads = ['score', `episodes, steps ${from}–${to}`, 'latest column'];
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <thead><tr>${heads.map(text => html`<th scope="col">${text}</th>`)}</tr></thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`;
}

/** Returns the score of a bin. If the bin contains several different scores, returns their range. */
function scoresIn({ lowest, highest }: ScoreStrip, bin: number): string {
  const [from, to] = [formatNumber(lowest[bin]), formatNumber(highest[bin])];
  return from === to ? from : `${from} … ${to}`;
}
