// The pictures of a state, one below the other, and the text of the state without the marks that they replace: `<image>`,
// or the words `[image]` in a run of another trainer.
import { html, type TemplateResult } from 'lit';
import { plainMark } from '../../extension/common/picture-mark';
import './lazy-picture';

/** The mark of a picture in a run of another trainer. */
export const foreignMark = '[image]';

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

/**
 * Returns the state without the marks whose picture is shown.
 * @param mark the mark of a picture in the run
 */
export function withoutShown(
  state: string,
  pictures: readonly (string | null)[],
  mark: typeof plainMark | typeof foreignMark = plainMark,
): string {
  let next = 0;
  return state.replaceAll(mark, word => ((pictures[next++] ?? null) === null ? word : ''));
}
