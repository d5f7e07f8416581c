// Renders the displayed episode with facts, turns and outcome. If there is no episode, renders the trainer's phase.
// While the setting `follow` is on, the page scrolls with new tokens.
import { html, nothing, type TemplateResult } from 'lit';
import { guard } from 'lit/directives/guard.js';
import type { RunSummary } from '../../extension/protocol/page-state';
import type { WatchedEpisode } from '../../extension/protocol/trainer-link';
import { runningReturns } from '../../extension/run-data/running-returns';
import '../components/scroll-follower';
import { componentValues } from '../components/reward-components';
import { rolesOutcome } from '../components/role-returns';
import { formatSigned } from '../shared/format';
import type { LiveActions } from './actions';
import { phaseLabels } from './phase-labels';
import { isTagChosen, type LiveState } from './state';
import { environmentState, turnView } from './turn';

export function episodeView(
  episode: WatchedEpisode,
  run: RunSummary,
  state: LiveState,
  actions: LiveActions,
): TemplateResult {
  const { theme } = state;
  const running = runningReturns(episode.turns.map(({ role, outcome }) => ({ role, reward: outcome?.reward ?? 0 })));
  const turns = episode.turns.map((turn, i) => guard([turn, theme], () => turnView(episode, turn, running[i], theme)));
  return html`<scroll-follower
    class="live-main"
    role="main"
    tabindex="0"
    aria-label="Episode"
    .following=${state.settings.follow}
    .content=${episode}
    .onScrollBack=${() => actions.follow(false)}
  >
    <p class="live-phase" role="status">${phaseText(episode, run, state)}</p>
    ${factsView(episode)}
    <div class="live-turns">${turns}</div>
    ${episode.over ? endView(episode, state) : nothing}
  </scroll-follower>`;
}

function phaseText(episode: WatchedEpisode, run: RunSummary, state: LiveState): string {
  const { received, settings } = state;
  if (received === null) {
    const { title, text } = phaseLabels(run, isTagChosen(state), true);
    return `${title}. ${text}`;
  }
  const isOther = received.id !== episode.id;
  return isOther && !settings.follow ? 'Another episode is running: turn on Follow to see it.' : '';
}

function factsView(episode: WatchedEpisode): TemplateResult {
  const { id, mode, step, tag, group_id, member, seed, environment, turns } = episode;
  const fact = (label: string, value: string, hint?: string): TemplateResult =>
    html`<span title=${hint ?? nothing}><span class="muted">${`${label} `}</span>${value}</span>`;
  return html`<p class="live-facts">
    <strong title=${id}>${tag}</strong>
    <span>${mode === 'val' ? `validation after step ${step}` : `step ${step}`}</span>
    ${fact('seed', String(seed))} ${fact('group', String(group_id))} ${fact('member', String(member))}
    ${fact('version', environment.version.slice(0, 8), 'Hash of the environment’s code')}
    ${turns.length === 0 ? html`<span class="muted">being reset</span>` : nothing}
  </p>`;
}

function endView(episode: WatchedEpisode, { theme }: LiveState): TemplateResult {
  const { success, error } = episode;
  const { label, value } = outcomeOf(episode);
  return html`<div class="live-end">
    ${environmentState(episode, episode.turns.length, theme)}
    <p class=${success ? 'verdict success' : 'verdict'}><strong>${label}</strong>${` · ${value}`}</p>
    ${componentValues(episode)} ${error === undefined ? nothing : html`<p class="warning">${error}</p>`}
  </div>`;
}

/** Returns the episode's outcome as a text for screen readers; empty while the episode is running. */
export function spokenOutcome(episode: WatchedEpisode): string {
  const { label, value } = outcomeOf(episode);
  return episode.over ? `${label}, ${value}` : '';
}

function outcomeOf({ success, reward, penalty, component_reward = 0, roles, error }: WatchedEpisode): {
  label: string;
  value: string;
} {
  return {
    label: error !== undefined ? 'Ended by an environment error' : success ? 'Solved' : 'Not solved',
    value: roles
      ? rolesOutcome(roles)
      : `return ${formatSigned(reward)} · score ${formatSigned(reward + penalty + component_reward)}`,
  };
}
