// Requests the heat maps that the reader shows, one episode at a time, and cancels a request whose maps are no longer
// shown.
import { episodeHeat, episodeHeatEnd, episodeHeatPhase } from '../../../extension/protocol/episodes-page';
import { messageOf, type Host } from '../../shared/host';
import type { EpisodesEvent } from '../reducer';
import type { EpisodesState } from '../state';
import { mappedEpisodes } from './heat-state';
import { heatKey } from './heats';

/** Returns a function that is called after each change of the state. */
export function heatRequests(host: Host, dispatch: (event: EpisodesEvent) => void): (state: EpisodesState) => void {
  /** Key of the maps that are being computed. */
  let pending: string | null = null;
  host.onNotify(episodeHeatPhase, ({ phase }) => {
    if (pending !== null) dispatch({ type: 'heat', key: pending, heat: { kind: 'working', text: phase } });
  });
  return state => {
    const part = state.settings.explains;
    const wanted = mappedEpisodes(state);
    const keys = wanted.map(({ id }) => heatKey(id, part));
    if (pending !== null) {
      if (!keys.includes(pending)) host.notify(episodeHeatEnd, null);
      return; // the next one is requested when this one has ended
    }
    const next = wanted.find(({ id }) => !state.heats.has(heatKey(id, part)));
    if (!next) return;
    const { step, mode, id } = next;
    const key = heatKey(id, part);
    pending = key;
    const ended = (event: EpisodesEvent): void => {
      pending = null;
      dispatch(event);
    };
    dispatch({ type: 'heat', key, heat: { kind: 'working', text: 'starting' } });
    host.request(episodeHeat, { step, mode, id, part }).then(
      maps => ended({ type: 'heat', key, heat: maps && { kind: 'ready', maps } }),
      (error: unknown) => ended({ type: 'heat', key, heat: { kind: 'failed', text: messageOf(error) } }),
    );
  };
}
