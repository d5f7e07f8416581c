// The heat maps of the episodes that the reader shows: which ones are needed, and the scale that they share. Pure.
import type { TurnHeat } from '../../../extension/protocol/heat-maps';
import type { Episode } from '../../../extension/run-data/episode';
import { maximum } from '../../../extension/common/lists';
import type { Reading } from '../episodes-settings';
import type { EpisodesState } from '../state';
import { heatKey } from './heats';

/** What views need to draw heat maps. */
export interface ShownHeat {
  /** Returns the heat maps of a turn; undefined while there are none. */
  of(id: string, turn: number): TurnHeat | undefined;
  /** The value with the full colour: the largest value of all maps that are shown. */
  most: number;
}

/** The views that draw heat maps. */
export const readingsWithHeat: ReadonlySet<Reading> = new Set(['episode', 'group', 'film']);

/** Whether a state of the episode has a picture before a response. */
export const hasPictures = ({ turns }: Pick<Episode, 'turns'>): boolean =>
  turns.some(({ pictures = [] }) => pictures.some(picture => picture !== null));

/** Returns the episodes whose heat maps the reader shows; none if heat maps are off, or in a view without them. */
export function mappedEpisodes({ settings, shown }: Pick<EpisodesState, 'settings' | 'shown'>): Episode[] {
  if (!settings.heat || shown?.kind !== 'episode') return [];
  const { subject, episode, others } = shown;
  if (!readingsWithHeat.has(subject.reading)) return [];
  return (subject.reading === 'episode' ? [episode] : others.filter(each => each !== null)).filter(hasPictures);
}

/** Returns what views need to draw heat maps; null if they are off. */
export function shownHeat(state: Pick<EpisodesState, 'settings' | 'shown' | 'heats'>): ShownHeat | null {
  const { settings, heats } = state;
  if (!settings.heat) return null;
  const turns = new Map<string, Map<number, TurnHeat>>();
  for (const { id } of mappedEpisodes(state)) {
    const heat = heats.get(heatKey(id, settings.explains));
    if (heat?.kind === 'ready') turns.set(id, new Map(heat.maps.turns.map(each => [each.turn, each])));
  }
  const maps = [...turns.values()].flatMap(each => [...each.values()].flatMap(({ pictures }) => pictures));
  return {
    of: (id, turn) => turns.get(id)?.get(turn),
    most: maximum(
      maps.map(({ values }) => maximum(values, 0)),
      0,
    ),
  };
}
