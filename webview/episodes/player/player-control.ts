// Connects the player to timers, keys and the host: advances a playing episode, handles the player's keys, and saves
// exported movies.
import { episodesExport, type EpisodeMovie } from '../../../extension/protocol/episodes-page';
import { messageOf, type Host } from '../../shared/host';
import { entryOfKey, isTyping } from '../../shared/keyboard';
import type { EpisodesEvent } from '../reducer';
import type { EpisodesState } from '../state';
import { gifMovie, webmMovie } from './movie';
import { frameMs, speedAfter, type PlayerCommand } from './playback';

type Dispatch = (event: EpisodesEvent) => void;

/** Whether the user asked the system for less motion; playback then starts only on request. */
export const prefersStillness = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;

/** Returns a function that is called with each new state and advances the frame of a playing episode in time. */
export function playbackClock(dispatch: Dispatch): (state: EpisodesState) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let due = '';
  return ({ player, shown, settings: { reading, speed } }) => {
    const episode = reading === 'playback' && shown?.kind === 'episode' && player.isPlaying ? shown.episode : null;
    const next = episode ? `${episode.id} ${player.frame} ${speed}` : '';
    if (next === due) return;
    due = next;
    clearTimeout(timer);
    if (!episode) return;
    const advance = (): void => {
      due = '';
      dispatch({ type: 'player', command: 'advance' });
    };
    timer = setTimeout(advance, frameMs(player.frame, episode.turns.length + 1, speed));
  };
}

interface PlayerKey {
  readonly does: string;
  event(settings: EpisodesState['settings']): EpisodesEvent;
}

const command = (does: string, to: PlayerCommand): PlayerKey => ({
  does,
  event: () => ({ type: 'player', command: to }),
});

const speed = (does: string, by: -1 | 1): PlayerKey => ({
  does,
  event: settings => ({ type: 'speed', speed: speedAfter(settings.speed, by) }),
});

/** The keys of the player, which work while an episode is played. */
export const playerKeys: Readonly<Record<string, PlayerKey>> = {
  ' ': command('Play or pause', 'toggle'),
  ArrowLeft: command('Previous turn', 'previous'),
  ArrowRight: command('Next turn', 'next'),
  Home: command('First turn', 'first'),
  End: command('Last turn', 'last'),
  '-': speed('Slower', -1),
  '+': speed('Faster', 1),
  l: { does: 'Repeat at the end, or stop there', event: ({ loop }) => ({ type: 'loop', loop: !loop }) },
};

/**
 * Handles the keys of the player. Keys that a control or the list uses itself are left to it: the space bar on a button,
 * and keys whose default action was prevented.
 */
export function listenForPlayerKeys(target: Document, read: () => EpisodesState, dispatch: Dispatch): void {
  target.addEventListener('keydown', event => {
    const { settings, shown } = read();
    if (settings.reading !== 'playback' || shown?.kind !== 'episode' || event.defaultPrevented) return;
    if (isTyping(event)) return;
    const onButton = event.target instanceof Element && event.target.closest('button, vscode-button, summary') !== null;
    const action = event.key === ' ' && onButton ? undefined : entryOfKey(playerKeys, event);
    if (!action) return;
    dispatch(action.event(settings));
    event.preventDefault();
  });
}

export interface MovieExports {
  gif(): Promise<void>;
  webm(): Promise<void>;
  /** Ends a recording without a file. */
  cancel(): void;
}

/** Exports the open episode, and reports progress and failures to the state. */
export function movieExports(host: Host, read: () => EpisodesState, dispatch: Dispatch): MovieExports {
  let recording: AbortController | undefined;
  const save = async (
    format: 'gif' | 'webm',
    make: (state: EpisodesState & { shown: { kind: 'episode' } }) => Promise<Parameters<typeof request>[0] | null>,
  ): Promise<void> => {
    const state = read();
    if (state.shown?.kind !== 'episode' || state.movie?.kind === 'working') return;
    const work = format === 'gif' ? 'Encoding the GIF' : 'Recording the WebM video';
    dispatch({ type: 'movie', movie: { kind: 'working', text: work, canCancel: format === 'webm' } });
    try {
      const movie = await make({ ...state, shown: state.shown });
      if (movie) await request(movie);
      dispatch({ type: 'movie', movie: null });
    } catch (error) {
      dispatch({ type: 'movie', movie: { kind: 'failed', text: messageOf(error) } });
    }
  };
  const request = (movie: EpisodeMovie): Promise<boolean> => host.request(episodesExport, movie);
  return {
    gif: () =>
      save('gif', async ({ shown, theme, settings }) => {
        await new Promise(resolve => requestAnimationFrame(resolve)); // shows that the GIF is being encoded
        return gifMovie(shown.episode, theme, settings);
      }),
    webm: () =>
      save('webm', ({ shown, theme, settings }) => {
        recording = new AbortController();
        const { signal } = recording;
        const frames = shown.episode.turns.length + 1;
        const onFrame = (frame: number): void => {
          const text = `Recording the WebM video, frame ${frame + 1} of ${frames}`;
          if (!signal.aborted) dispatch({ type: 'movie', movie: { kind: 'working', text, canCancel: true } });
        };
        return webmMovie(shown.episode, theme, settings, onFrame, signal);
      }),
    cancel: () => recording?.abort(),
  };
}
