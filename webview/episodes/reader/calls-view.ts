// The tool calls of a turn: each call with its arguments, its result as the model saw it, and its duration. A failed
// call is marked. All texts are inserted as plain text, because the model and the tools wrote them.
import { html, nothing, type TemplateResult } from 'lit';
import { callText, type ToolCallRecord } from '../../../extension/run-data/tool-call';
import { counted } from '../../shared/format';

/** Renders the calls in the order in which the model wrote them. */
export const callsView = (calls: readonly ToolCallRecord[]): TemplateResult =>
  html`<ol class="calls" aria-label=${counted(calls.length, 'tool call')}
    >${calls.map(callView)}</ol
  >`;

function callView(call: ToolCallRecord): TemplateResult {
  const { result, error, ms } = call;
  const failed = html`<span class="warning">failed</span>`;
  return html`<li class="call" data-failed=${error}
    ><code>${callText(call)}</code> ${error ? failed : nothing}<span class="muted" title="Duration of the call"
      >${ms} ms</span
    ><pre class="call-result">${result}</pre>
  </li>`;
}
