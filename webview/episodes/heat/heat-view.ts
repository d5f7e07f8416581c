// The pictures of a state with the heat maps of a turn over them, and what the maps do not show. The true state beside them
// is what the environment says that the pictures show.
import { html, nothing, type TemplateResult } from 'lit';
import type { HeatMap, TurnHeat } from '../../../extension/protocol/heat-maps';
import type { Episode } from '../../../extension/run-data/episode';
import '../../components/heat-picture';
import { statePictures } from '../../components/state-pictures';
import { formatPercent } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import { textState } from '../reader/text-state';
import type { TurnOptions } from '../reader/turn-options';

/** Colour of the cells. */
export const heatColour = ({ palette }: Theme): string => palette[hue.vermillion];

/** Renders a picture with a heat map; `most` is the value with the full colour. */
export const heatPicture = (shown: {
  src: string;
  label: string;
  map: HeatMap;
  most: number;
  theme: Theme;
  bare?: boolean;
}): TemplateResult =>
  html`<heat-picture
    .src=${shown.src}
    .label=${shown.label}
    .map=${shown.map}
    .most=${shown.most}
    .colour=${heatColour(shown.theme)}
    .bare=${shown.bare ?? false}
  ></heat-picture>`;

/** Renders the pictures of a turn's state with their maps; without maps, the pictures and the reason. */
export function heatPictures(
  pictures: readonly (string | null)[],
  { tokens, pictures: maps, earlier }: TurnHeat,
  { heat, theme }: Pick<TurnOptions, 'heat' | 'theme'>,
): TemplateResult {
  if (!heat || maps.length !== pictures.length) {
    const reason = tokens === 0 ? 'no tokens to explain' : 'the prompt does not end with these pictures';
    return html`${statePictures(pictures)}<p class="heat-readout muted">${reason}</p>`;
  }
  const label = (i: number): string => `Picture ${i + 1} of ${pictures.length} of the state`;
  const drawn = pictures.map((src, i) =>
    src === null ? nothing : heatPicture({ src, label: label(i), map: maps[i], most: heat.most, theme }),
  );
  const share = formatPercent(earlier);
  return html`${drawn}${
    earlier < 0.005
      ? nothing
      : html`<p class="heat-readout muted">${share} of the heat is on pictures of earlier turns</p>`
  }`;
}

/** Renders the true state of a turn with its changes; nothing if the episode does not contain it. */
export function trueStateView({ turns }: Pick<Episode, 'turns'>, index: number): TemplateResult | typeof nothing {
  const { true_state: state } = turns[index];
  if (state === undefined) return nothing;
  return html`<figure class="true-state"
    ><figcaption class="muted">True state</figcaption>${textState(state, turns[index - 1]?.true_state ?? null)}</figure
  >`;
}
