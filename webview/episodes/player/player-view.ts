// The player: one frame of the open episode, with controls above it that never move. Text and board are those of the
// reader; the frame changes without transitions.
import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { button, dropdown, link } from '../../components/controls';
import { openMenu } from '../../components/menu';
import { rolesOutcome } from '../../components/role-returns';
import { formatSigned } from '../../shared/format';
import type { EpisodesActions } from '../actions';
import { episodeHead } from '../reader/episode-head';
import { ending } from '../reader/episode-view';
import { stateView } from '../reader/state-view';
import type { TurnOptions } from '../reader/turn-options';
import { actionsView, rewardView } from '../reader/turn-view';
import type { EpisodesState } from '../state';
import { thoughtText } from './frame-picture';
import { playbackFrames, speeds, type PlaybackFrame } from './playback';

export function playerView(
  episode: Episode,
  members: readonly EpisodeRow[],
  state: Pick<EpisodesState, 'player' | 'movie' | 'settings'>,
  options: TurnOptions,
  actions: EpisodesActions,
): TemplateResult {
  const frames = playbackFrames(episode);
  const { player, movie } = state;
  const frame = frames[Math.min(player.frame, frames.length - 1)];
  const status =
    movie === null
      ? nothing
      : html`<p class=${movie.kind === 'failed' ? 'player-status warning' : 'player-status muted'} role="status">
          ${movie.text}${movie.kind === 'working' && movie.canCancel ? link('Cancel', actions.cancelMovie) : nothing}
        </p>`;
  return html`<article class="episode player" aria-label="Playback of episode ${episode.id}">
    ${episodeHead(episode, members, actions)} ${controls(frames, state, actions)} ${status}
    <section class="player-stage" aria-live=${player.isPlaying ? 'off' : 'polite'} aria-label=${frame.title}>
      <div class="player-board">${stateView(frame.state, frame.previous, episode, options, frame.pictures)}</div>
      <div class="turn-answer">${answer(frame, episode, options)}</div>
    </section>
  </article>`;
}

function controls(
  frames: readonly PlaybackFrame[],
  {
    player: { frame, isPlaying },
    movie,
    settings: { speed, loop },
  }: Pick<EpisodesState, 'player' | 'movie' | 'settings'>,
  actions: EpisodesActions,
): TemplateResult {
  const onInput = ({ target }: Event): void => actions.movePlayer({ to: Number((target as HTMLInputElement).value) });
  const last = frames.length - 1;
  const step = (label: string, icon: 'left' | 'right', command: 'previous' | 'next', key: string): TemplateResult =>
    button({ label: `${label} ( ${key} )`, icon, iconOnly: true, onClick: () => actions.movePlayer(command) });
  return html`<div class="player-controls" role="group" aria-label="Playback">
    <span class="player-buttons"
      >${step('Previous turn', 'left', 'previous', '←')}${button({
        label: isPlaying ? 'Pause' : 'Play',
        icon: isPlaying ? 'pause' : 'play',
        title: 'Play or pause ( Space )',
        onClick: () => actions.movePlayer('toggle'),
      })}${step('Next turn', 'right', 'next', '→')}</span
    >
    <input
      type="range"
      class="player-position"
      min="0"
      max=${last}
      step="1"
      .value=${live(String(Math.min(frame, last)))}
      aria-label="Turn"
      aria-valuetext=${frames[Math.min(frame, last)].title}
      @input=${onInput}
    />
    <output class="player-title">${frames[Math.min(frame, last)].title}</output>
    <span class="player-speed" title="Speed ( − and + )"
      >${dropdown({
        label: 'Speed',
        choices: speeds.map(value => [String(value), `${value}×`] as const),
        value: String(speed),
        onChange: value => actions.playAt(Number(value)),
      })}</span
    >
    ${button({
      label: 'Loop',
      pressed: loop,
      title: 'Start again after the end; exported GIFs repeat ( l )',
      onClick: () => actions.loopPlayback(!loop),
    })}
    ${button({
      label: 'Export',
      icon: 'export',
      title: 'Export the playback as a GIF or a WebM video',
      hasPopup: true,
      disabled: movie?.kind === 'working',
      onClick: ({ currentTarget }) =>
        openMenu(currentTarget as HTMLElement, 'Export the playback', [
          { label: 'GIF…', run: () => actions.exportMovie('gif') },
          { label: 'WebM video…', run: () => actions.exportMovie('webm') },
        ]),
    })}
  </div>`;
}

function answer(
  { turn, endsEpisode, running, largest }: PlaybackFrame,
  episode: Episode,
  { theme, raw }: TurnOptions,
): TemplateResult {
  if (!turn)
    return html`<p class="thought">${ending(episode)}</p>
      <p class="muted"
        >${
          episode.roles
            ? rolesOutcome(episode.roles)
            : `return ${formatSigned(running)} · score ${formatSigned(episode.score)}`
        }</p
      >`;
  const thought = raw
    ? html`<pre class="raw">${turn.raw}</pre>`
    : html`<p class="thought ${turn.thought === null ? 'warning' : ''}">${thoughtText(turn.thought)}</p>
        ${actionsView(turn, endsEpisode)}`;
  return html`${thought} ${rewardView(turn, running, largest, theme)}`;
}
