// Renders the Live page: a bar, and the displayed episode or the reason why there is none.
import type { LiveActions } from './actions';
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { notice, skeleton } from '../components/notice';
import { episodeView, spokenOutcome } from './episode';
import { phaseLabels } from './phase-labels';
import { isConnected, isTagChosen, type LiveState } from './state';
import { topBar } from './top-bar';

export function liveView(state: LiveState, actions: LiveActions): TemplateResult {
  const { connection, run, shown } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'Could not connect to the run',
      text: connection.failed,
      action: { label: 'Try again', run: actions.connect },
    });
  if (connection === 'connecting' || !run) return skeleton('skeleton-live', 3, 'Connecting to the run');
  return html`<div class="live">
    ${topBar(run, state, actions)} ${shown ? episodeView(shown, run, state, actions) : emptyView(run, state, actions)}
    <p class="visually-hidden" role="status">${shown ? spokenOutcome(shown) : ''}</p>
  </div>`;
}

function emptyView(run: RunSummary, state: LiveState, actions: LiveActions): TemplateResult {
  const { title, text, action } = phaseLabels(run, isTagChosen(state), isConnected(state));
  const labels = { resume: 'Resume', episodes: 'Episodes', log: 'Log' };
  const offer = action && { label: labels[action], run: () => actions.command(action) };
  return html`<main class="live-main live-empty">${notice({ kind: 'empty', title, text, action: offer })}</main>`;
}
