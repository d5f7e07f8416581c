// Renders the Play page: a bar, messages, the board, and the episode next to the board. Below the board are the outcome
// of the last action and the possible actions.
import type { PlayActions } from './actions';
import { html, nothing, type TemplateResult } from 'lit';
import type { PlayReply, PlaySession, Shown } from '../../extension/protocol/environment-tools';
import { link } from '../components/controls';
import { notice, skeleton } from '../components/notice';
import { actionBar } from './action-bar';
import { observationView } from './observation';
import { outcomeView } from './outcome';
import { sideView } from './side-column';
import { viewedStep, type PlayState } from './state';
import { topBar } from './top-bar';

export function playView(state: PlayState, actions: PlayActions): TemplateResult {
  const { connection, reply } = state;
  if (typeof connection === 'object')
    return notice({
      kind: 'error',
      title: 'The environment could not be started',
      text: connection.failed,
      action: { label: 'Try again', run: actions.connect },
    });
  if (!reply) return skeleton('skeleton-play', 3, 'Starting the environment');
  const { session, error } = reply;
  if (!session)
    return notice({
      kind: 'error',
      title: 'The environment does not load',
      text: error?.message ?? 'The environment did not start.',
      action: { label: 'Reload', run: () => actions.ask({ do: 'reload' }) },
    });
  return sessionView(session, state, actions);
}

function sessionView(session: PlaySession, state: PlayState, actions: PlayActions): TemplateResult {
  const viewed = viewedStep(state, session);
  const states: Shown[] = [session.first, ...session.steps];
  return html`<div class="play" aria-busy=${state.busy ? 'true' : nothing}>
    ${topBar(session, state, actions)}
    <div class="play-message" role="alert">${messageView(state.reply?.error, state.stale, actions)}</div>
    <div class="play-main">
      <main class="play-board">${observationView(states[viewed], states[viewed - 1])}</main>
      <div class="play-outcome" role="status">${outcomeView(session, viewed, actions)}</div>
      <div class="play-controls">${actionBar(session, state.answer, actions)}</div>
    </div>
    <aside class="play-side" aria-label="Episode">${sideView(session, viewed, state.looked === null, actions)}</aside>
  </div>`;
}

/** Renders the error of the last request, or a notice that the code has changed. */
function messageView(
  error: PlayReply['error'],
  stale: string | null,
  actions: PlayActions,
): TemplateResult | typeof nothing {
  if (error) {
    const { at, message } = error;
    const open = at === undefined ? nothing : html` ${link('Open the line', () => actions.openSource(at))}`;
    return html`<p class="problem">${message}${open}</p>`;
  }
  if (stale === null) return nothing;
  const reload = link('Reload', () => actions.ask({ do: 'reload' }));
  return html`<p>${`${stale} was saved. `}${reload} replays this episode on the new code.</p>`;
}
