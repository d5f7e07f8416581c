// The pane with the details of the selected span: its kind, its times and counts and, for a waiting span, the episode
// that it waited for. For a span of an episode, a table lists all spans of this episode in order. For a call of the
// generator, a table lists the rows of the batch and how long each row waited for the last row to end.
import { html, nothing, type TemplateResult } from 'lit';
import { laneLabels } from '../../extension/run-data/chrome-trace';
import type { StepTimeline } from '../../extension/run-data/timeline';
import { link } from '../components/controls';
import type { TimelineActions } from './actions';
import { isWait } from './lane-colours';
import { spanLabel } from './labels';
import { causeOf, chainOf, kindTotals, rowsOfCall } from './span-relations';
import type { OpenStep } from './state';
import { shortId } from './step-layout';
import { formatUs } from './time-axis';

export function spanDetails(open: OpenStep, actions: TimelineActions): TemplateResult {
  const { timeline, selected } = open;
  if (selected === null || selected >= timeline.spans.start.length) return stepDetails(timeline, actions);
  const { spans, names, episodes } = timeline;
  const kind = names[spans.name[selected]];
  const episode = spans.episode[selected] >= 0 ? episodes[spans.episode[selected]] : null;
  const seconds = spans.us[selected] / 1e6;
  const [rows, tokens, turn] = [spans.rows[selected], spans.tokens[selected], spans.turn[selected]];
  return html`<section class="details" aria-label="Selected span">
    <div class="details-facts">
      <h2>${spanLabel(kind)}</h2>
      <dl>
        ${fact('Lane', laneLabels[kind.lane])} ${fact('Recorded as', kind.name)}
        ${fact('Begins', formatUs(spans.start[selected]))} ${fact('Lasts', formatUs(spans.us[selected]))}
        ${turn > 0 ? fact('Turn', String(turn)) : nothing} ${rows > 0 ? fact('Rows', String(rows)) : nothing}
        ${tokens > 0 ? fact('Tokens', String(tokens)) : nothing}
        ${tokens > 0 && seconds > 0 ? fact('Tokens/s', Math.round(tokens / seconds).toLocaleString('en-US')) : nothing}
        ${
          episode === null
            ? nothing
            : fact(
                'Episode',
                link(episode, () => actions.openEpisode(episode)),
              )
        }
        ${spans.cause[selected] >= 0 ? fact('Waits for', causeLink(timeline, selected, actions)) : nothing}
      </dl>
    </div>
    ${
      spans.episode[selected] >= 0
        ? chainTable(timeline, selected, actions)
        : kind.name === 'generate'
          ? callTable(timeline, selected, actions)
          : nothing
    }
  </section>`;
}

const fact = (term: string, value: unknown): TemplateResult => html`<div><dt>${term}</dt><dd>${value}</dd></div>`;

/** Renders the content of the pane if no span is selected: the total time of each kind of span. */
function stepDetails(timeline: StepTimeline, actions: TimelineActions): TemplateResult {
  const rows = kindTotals(timeline).slice(0, 40);
  const { merged, limit, names } = timeline;
  const count = merged.reduce((sum, spans) => sum + spans.count, 0);
  return html`<section class="details" aria-label="Kinds of spans">
    <div class="table-scroll" tabindex="0">
      <table>
        <caption class="visually-hidden">Total time of each kind of span</caption>
        <thead>
          <tr
            ><th scope="col">Span</th><th scope="col">Lane</th><th class="number" scope="col">Count</th
            ><th class="number" scope="col">Total</th><th class="number" scope="col">Mean</th
            ><th class="number" scope="col">Longest</th></tr
          >
        </thead>
        <tbody>
          ${rows.map(
            ({ kind, count, us, longest, at }) =>
              html`<tr>
                <th scope="row">${spanLabel(names[kind])}</th>
                <td>${laneLabels[names[kind].lane]}</td>
                <td class="number">${count}</td>
                <td class="number">${formatUs(us)}</td>
                <td class="number">${formatUs(us / count)}</td>
                <td class="number">${link(formatUs(longest), () => actions.select(at))}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${
        count > 0
          ? html`<p class="muted"
              >${count} shorter spans are not drawn one by one (the file keeps at most ${limit}).</p
            >`
          : nothing
      }
    </div>
  </section>`;
}

function chainTable(timeline: StepTimeline, selected: number, actions: TimelineActions): TemplateResult {
  const { spans, names } = timeline;
  const chain = chainOf(timeline, selected);
  return html`<div class="table-scroll" tabindex="0">
    <table>
      <caption class="visually-hidden">What the episode did</caption>
      <thead>
        <tr
          ><th class="number" scope="col">Turn</th><th scope="col">Span</th><th class="number" scope="col">Begins</th
          ><th class="number" scope="col">Lasts</th><th class="number" scope="col">Tokens</th
          ><th scope="col">Waits for</th></tr
        >
      </thead>
      <tbody>
        ${chain.map(
          i =>
            html`<tr
              aria-current=${i === selected ? 'true' : nothing}
              class=${isWait('episodes', names[spans.name[i]].name) ? 'muted' : ''}
            >
              <td class="number">${spans.turn[i] || ''}</td>
              <th scope="row">${link(spanLabel(names[spans.name[i]]), () => actions.select(i))}</th>
              <td class="number">${formatUs(spans.start[i])}</td>
              <td class="number">${formatUs(spans.us[i])}</td>
              <td class="number">${spans.tokens[i] || ''}</td>
              <td>${spans.cause[i] >= 0 ? causeLink(timeline, i, actions) : ''}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/**
 * Renders a link to the span that span `i` waited for (`causeOf`). The text of the link is the id of the awaited
 * episode.
 */
function causeLink(timeline: StepTimeline, i: number, actions: TimelineActions): TemplateResult {
  const cause = causeOf(timeline, i);
  const label = shortId(timeline.episodes[timeline.spans.cause[i]]);
  return cause < 0 ? html`${label}` : link(label, () => actions.select(cause));
}

function callTable(timeline: StepTimeline, call: number, actions: TimelineActions): TemplateResult {
  const { spans, episodes } = timeline;
  const rows = rowsOfCall(timeline, call);
  if (rows.length === 0) return html``;
  const end = spans.start[call] + spans.us[call];
  const waits = rows.map(i => end - spans.start[i] - spans.us[i]);
  const mean = waits.reduce((sum, us) => sum + us, 0) / rows.length;
  return html`<div class="table-scroll" tabindex="0">
    <p>
      ${rows.length} rows; the last row to end was
      ${link(shortId(episodes[spans.episode[rows[0]]]), () => actions.select(rows[0]))}. On average, a row waited
      ${formatUs(mean)} for the end of the call.
    </p>
    <table>
      <caption class="visually-hidden">Rows of the call, the longest first</caption>
      <thead>
        <tr
          ><th scope="col">Row</th><th class="number" scope="col">Sampling</th><th class="number" scope="col">Tokens</th
          ><th class="number" scope="col">Then waits</th></tr
        >
      </thead>
      <tbody>
        ${rows.slice(0, 100).map(
          (i, k) =>
            html`<tr>
              <th scope="row">${link(shortId(episodes[spans.episode[i]]), () => actions.select(i))}</th>
              <td class="number">${formatUs(spans.us[i])}</td>
              <td class="number">${spans.tokens[i] || ''}</td>
              <td class="number">${formatUs(waits[k])}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Describes the selected span in words, for the status line. */
export function describeSpan({ timeline, selected }: OpenStep): string {
  if (selected === null || selected >= timeline.spans.start.length) return '';
  const { spans, names, episodes } = timeline;
  const kind = names[spans.name[selected]];
  const episode = spans.episode[selected] >= 0 ? ` of ${episodes[spans.episode[selected]]}` : '';
  const cause = spans.cause[selected] >= 0 ? `, waits for ${episodes[spans.cause[selected]]}` : '';
  return `${spanLabel(kind)}${episode}: ${formatUs(spans.us[selected])}, from ${formatUs(spans.start[selected])}${cause}`;
}
