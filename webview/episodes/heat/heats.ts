// The heat maps of episodes that the page has requested.
import type { ExplainedPart, HeatMaps } from '../../../extension/protocol/heat-maps';

/** The heat maps of an episode, the progress of their computation, or why they could not be computed. */
export type Heat =
  | { readonly kind: 'working'; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'ready'; readonly maps: HeatMaps };

/** Heat maps by `heatKey`. */
export type Heats = ReadonlyMap<string, Heat>;

/** Returns the key of an episode's maps of a part of its responses. */
export const heatKey = (id: string, part: ExplainedPart): string => `${part} ${id}`;
