// One episode as a column of turns, under a header with its identity and outcome.
import { html, nothing, type TemplateResult } from 'lit';
import { keyed } from 'lit/directives/keyed.js';
import { maximum } from '../../../extension/common/lists';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { runningReturns } from '../../../extension/run-data/running-returns';
import { componentValues } from '../../components/reward-components';
import { counted } from '../../shared/format';
import { episodeHead } from './episode-head';
import type { EpisodesActions } from '../actions';
import { judgementsView } from './judgements-view';
import { stateView } from './state-view';
import { turnView } from './turn-view';
import { type TurnOptions } from './turn-options';

/**
 * Renders an episode. `members` are all episodes of its prompt group, including the episode itself; `bar` is above its
 * turns.
 */
export function episodeView(
  episode: Episode,
  members: readonly EpisodeRow[],
  options: TurnOptions,
  actions: EpisodesActions,
  bar: TemplateResult | typeof nothing = nothing,
): TemplateResult {
  const { id, turns, error, context_reason, final_state, final_pictures } = episode;
  const rewards = turns.map(({ reward }) => Math.abs(reward));
  const largest = maximum(rewards, 0);
  const running = runningReturns(turns);
  const sections = turns.map((_, i) => turnView(episode, i, running[i], largest, options));
  const state = html`<div class="turn-state"
    >${stateView(final_state, turns.at(-1)?.state ?? null, episode, options, final_pictures)}</div
  >`;
  const scores = html`<div class="turn-answer">${componentValues(episode)} ${judgementsView(episode)}</div>`;
  const isScored = episode.components !== undefined || episode.judgements !== undefined;
  const alert = (text: string): TemplateResult => html`<p class="episode-error" role="alert">${text}</p>`;
  return html`<article class="episode" aria-label="Episode ${id}">
    ${episodeHead(episode, members, actions)} ${error === undefined ? nothing : alert(error)}
    ${context_reason === undefined ? nothing : alert(context_reason)} ${keyed(id, promptView(episode))} ${bar}
    ${sections}
    <section class="turn final" aria-label="Final state">
      <header class="turn-head"><h3>End</h3><span class="muted">${ending(episode)}</span></header>
      ${isScored ? html`<div class="turn-body">${state}${scores}</div>` : state}
    </section>
  </article>`;
}

/** Returns a sentence about how the episode ended. */
export function ending({
  success,
  terminated,
  truncated,
  turns,
}: Pick<Episode, 'success' | 'terminated' | 'truncated' | 'turns'>): string {
  if (success) return 'The task was solved.';
  if (success === null) return terminated ? 'The episode ended.' : `Ended after ${counted(turns.length, 'turn')}.`;
  if (truncated) return 'The environment ended the episode without success, or no actions were left.';
  if (terminated) return 'The environment ended the episode.';
  return `Reached the turn limit after ${counted(turns.length, 'turn')}.`;
}

/**
 * Renders a collapsed section with the messages before the first response, that is, the system message and the first
 * user message.
 */
function promptView({ messages }: Episode): TemplateResult | typeof nothing {
  const answer = messages.findIndex(message => message.role === 'assistant');
  const prompt = answer < 0 ? messages : messages.slice(0, answer);
  if (prompt.length === 0) return nothing;
  const texts = prompt.map(
    ({ role, content }) => html`<h4 class="muted">${role}</h4><pre class="raw">${content}</pre>`,
  );
  return html`<details class="prompt"><summary>Prompt of the first turn</summary>${texts}</details>`;
}
