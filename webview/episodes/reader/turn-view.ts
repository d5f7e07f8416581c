// One turn: the state shown to the model, its reasoning and actions, and the reward. The texts of the model and of the
// environment are inserted as plain text, never as markup.
import type { TurnOptions } from './turn-options';
import { html, nothing, type TemplateResult } from 'lit';
import { actionOutcomes } from '../../../extension/run-data/action-outcomes';
import { hasTokens, type Episode, type EpisodeTurn } from '../../../extension/run-data/episode';
import { returnName } from '../../../extension/run-data/running-returns';
import { componentSum, componentValues } from '../../components/reward-components';
import { counted, formatSigned } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import { callsView } from './calls-view';
import { trueStateView } from '../heat/heat-view';
import { stateView } from './state-view';
import { sampledTokens, tokenStrip, tokenSummary, type SampledToken } from './token-log-probs';

/**
 * Renders a turn. `running` is the return of the turn's role up to and including this turn, without penalties.
 * `largest` is the largest absolute reward; it determines the scale of the bar.
 */
export function turnView(
  episode: Episode,
  index: number,
  running: number,
  largest: number,
  options: TurnOptions,
): TemplateResult {
  const { raw, tokens, theme } = options;
  const turn = episode.turns[index];
  const last = index === episode.turns.length - 1;
  const sampled = sampledTokens(episode, turn);
  const facts = [
    ...(turn.actions_left === null ? [] : [`${counted(turn.actions_left, 'action')} left`]),
    ...(hasTokens(episode) ? [tokenSummary(sampled)] : []),
  ].join(' · ');
  const cut = html`<span class="warning" title="Generation reached the token limit"
    >truncated at the length limit</span
  >`;
  const answer = (): TemplateResult =>
    html`<div class="answer"
      >${thoughtView(turn)}${turn.calls ? callsView(turn.calls) : actionsView(turn, last && episode.terminated)}</div
    >`;
  return html`<section class="turn" data-turn=${turn.turn} aria-label="Turn ${turn.turn}">
    <header class="turn-head">
      <h3>Turn ${turn.turn}${turn.role === undefined ? '' : `, ${turn.role}`}</h3>
      <span class="muted">${facts}</span>${turn.finish === 'length' ? cut : nothing}
    </header>
    <div class="turn-body">
      <div class="turn-state">${seenView(episode, index, options)}</div>
      <div class="turn-answer">
        ${raw ? html`<pre class="raw">${turn.raw}</pre>` : answer()}
        ${tokens ? tokensView(episode, sampled, theme) : nothing} ${rewardView(turn, running, largest, theme)}
      </div>
    </div>
  </section>`;
}

/** Renders the state of a turn; with heat maps, the environment's true state is beside its pictures. */
function seenView(episode: Episode, index: number, options: TurnOptions): TemplateResult {
  const turn = episode.turns[index];
  const heat = options.heat?.of(episode.id, turn.turn);
  const before = episode.turns[index - 1]?.state ?? null;
  const state = stateView(turn.state, before, episode, options, turn.pictures, heat);
  if (!options.heat || !turn.pictures) return state;
  return html`<div class="turn-seen"><div>${state}</div>${trueStateView(episode, index)}</div>`;
}

/** Renders the tokens of a turn, or says that the trainer stored none. */
const tokensView = (episode: Episode, sampled: readonly SampledToken[], theme: Theme): TemplateResult =>
  hasTokens(episode)
    ? tokenStrip(sampled, theme)
    : html`<p class="muted">The trainer stored neither token ids nor log-probs.</p>`;

function thoughtView({ thought, answer, raw }: EpisodeTurn): TemplateResult | typeof nothing {
  if (thought === null && answer !== null) return nothing; // a response without a thought
  if (thought === null)
    return html`<div class="unparsed">
      <p class="warning">The answer could not be parsed; no action was executed.</p>
      <pre class="raw">${raw}</pre>
    </div>`;
  return html`<p class="thought">${thought === '' ? html`<span class="muted">no thought</span>` : thought}</p>`;
}

/** Renders the actions of a turn; an action that was not executed is shown with the reason. */
export function actionsView(turn: EpisodeTurn, endsEpisode: boolean): TemplateResult | typeof nothing {
  const outcomes = actionOutcomes(turn, endsEpisode);
  if (outcomes.length === 0) {
    if (turn.answer === null) return nothing;
    const text = turn.answer === '' ? 'empty answer' : `answer “${turn.answer}” contains no valid action`;
    return html`<p class="muted">${text}</p>`;
  }
  const chips = outcomes.map(({ name, reason }) =>
    reason === null
      ? html`<li class="chip">${name}</li>`
      : html`<li class="chip refused"><s>${name}</s><span class="reason">${reason}</span></li>`,
  );
  return html`<ul class="chips" aria-label="Actions"
    >${chips}</ul
  >`;
}

/**
 * Renders the rewards of a turn: `reward −0.10 · penalty −0.1 · return 10.8`, with a bar left or right of zero, and the
 * values of the reward components.
 */
export function rewardView(
  turn: Pick<EpisodeTurn, 'role' | 'reward' | 'penalty' | 'component_reward' | 'components'>,
  running: number,
  largest: number,
  theme: Theme,
): TemplateResult {
  const { reward, penalty } = turn;
  const width = largest > 0 ? Math.min(50, (Math.abs(reward) / largest) * 50) : 0;
  const side = reward < 0 ? 'right:50%' : 'left:50%';
  const colour = theme.palette[reward < 0 ? hue.orange : hue.blue];
  const bar = html`<span style="${side};width:max(2px, ${width.toFixed(1)}%);background:${colour}"></span>`;
  const penalised = html`<span class="warning" title="Format penalty, not shown to the model"
    >penalty ${formatSigned(penalty)}</span
  >`;
  return html`<div class="reward"
      ><span class="bar" aria-hidden="true">${reward === 0 ? nothing : bar}</span
      ><span>reward <strong>${formatSigned(reward)}</strong></span
      >${penalty === 0 ? nothing : penalised}${componentSum(turn)}<span class="muted"
        >${returnName(turn)} ${formatSigned(running)}</span
      ></div
    >${componentValues(turn)}`;
}
