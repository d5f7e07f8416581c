// The colour of a run, the same on all pages. A user can choose it; the choice is stored in the run folder
// (`labels.json`) as the name of a palette entry, so that themes and versions can change the shades. Without a choice,
// the run's id determines the colour. Pure functions.
import { hue } from '../common/palette';

export type RunColour = keyof typeof hue;

/** All colours, in the order of the palette. */
export const runColours = Object.keys(hue) as [RunColour, ...RunColour[]];

/**
 * Returns the colour of a run for which the user has chosen none (FNV-1a hash of its id). It is never grey, because
 * users would take a grey run for a disabled one.
 */
export function ownColour(runId: string): RunColour {
  let hash = 0x811c9dc5;
  for (let i = 0; i < runId.length; i++) hash = Math.imul(hash ^ runId.charCodeAt(i), 0x01000193) >>> 0;
  return runColours[hash % hue.grey];
}

/** Returns the palette index of a run's colour. */
export const colourOfRun = ({ id, colour }: { readonly id: string; readonly colour?: RunColour | undefined }): number =>
  hue[colour ?? ownColour(id)];
