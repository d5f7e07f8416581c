// The colour of a run: a small square beside its name, and a menu that changes the colour.
import { html, type TemplateResult } from 'lit';
import { colourOfRun, ownColour, runColours, type RunColour } from '../../extension/run-data/run-colour';
import { paletteOf } from '../../extension/common/palette';
import { themeKind } from '../shared/theme';
import { openMenu } from './menu';

type ColouredRun = Parameters<typeof colourOfRun>[0];

/** Renders the colour of a run in the current theme. */
export const runSwatch = (run: ColouredRun): TemplateResult =>
  html`<span
    class="swatch run-swatch"
    aria-hidden="true"
    style="background:${paletteOf(themeKind(document.body.classList))[colourOfRun(run)]}"
  ></span>`;

/** Renders the colour as a button that opens a menu. `name` names the run; null restores the run's own colour. */
export const swatchButton = (
  run: ColouredRun,
  name: string,
  choose: (colour: RunColour | null) => void,
): TemplateResult =>
  html`<button
    class="plain swatch-button"
    type="button"
    title=${`Colour of ${name}…`}
    aria-label=${`Colour of ${name}`}
    aria-haspopup="menu"
    @click=${({ currentTarget }: Event) => openColours(currentTarget as HTMLElement, run, name, choose)}
    >${runSwatch(run)}</button
  >`;

function openColours(
  anchor: HTMLElement,
  { id, colour }: ColouredRun,
  name: string,
  choose: (colour: RunColour | null) => void,
): void {
  const own = {
    label: `Own colour (${labelOf(ownColour(id)).toLowerCase()})`,
    checked: colour === undefined,
    run: () => choose(null),
  };
  const named = runColours.map(each => ({
    label: labelOf(each),
    checked: colour === each,
    run: () => choose(each),
  }));
  openMenu(anchor, `Colour of ${name}`, [own, null, ...named]);
}

const labelOf = (colour: RunColour): string =>
  colour === 'sky' ? 'Sky blue' : `${colour[0].toUpperCase()}${colour.slice(1)}`;
