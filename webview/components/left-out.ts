// Says which data of another trainer's run is not shown, for example the rollouts beyond the limits of a step, or a
// damaged file.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';

/** Renders the sentences of the run's status; nothing for a run that is shown completely. */
export function leftOutNote({ status: { left_out: sentences = [] } }: RunSummary): TemplateResult | typeof nothing {
  if (sentences.length === 0) return nothing;
  const title =
    sentences.length === 1 ? 'Not everything is shown' : `Not everything is shown: ${sentences.length} reasons`;
  return html`<details class="left-out" role="status"
    ><summary>▲ ${title}</summary
    ><ul
      >${sentences.map(sentence => html`<li>${sentence}</li>`)}</ul
    ></details
  >`;
}
