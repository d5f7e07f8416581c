// The pictures of a state, one below the other, and the text of the state without the marks that they replace: `<image>`,
// or the words `[image]` in a run of another trainer.
import { html, type TemplateResult } from 'lit';
import './lazy-picture';

/** Renders the pictures; missing ones are left out. `pictures` are data URLs, null for a missing picture. */
export function statePictures(pictures: readonly (string | null)[]): TemplateResult[] {
  const shown = pictures.filter(picture => picture !== null);
  return shown.map(
    (picture, i) =>
      html`<lazy-picture
        class="state-picture"
        .src=${picture}
        .label=${`Picture ${i + 1} of ${shown.length} of the state`}
      ></lazy-picture>`,
  );
}

/** Returns the state without the marks whose picture is shown. */
export function withoutShown(state: string, pictures: readonly (string | null)[]): string {
  let next = 0;
  return state.replaceAll(/<image>|\[image\]/g, word => ((pictures[next++] ?? null) === null ? word : ''));
}
