// The observation in large type: its images and its unmodified text. Characters that differ from the previous step's
// text are marked if both texts have the same number of lines and the same line lengths. This is usual if the texts
// show a board.
import { html, nothing, type TemplateResult } from 'lit';
import type { Shown } from '../../extension/protocol/environment-tools';

/** Consecutive characters that are all marked or all unmarked. */
export interface Piece {
  text: string;
  changed: boolean;
}

/**
 * Splits a text into marked and unmarked pieces. Nothing is marked if the number of lines or the length of a line has
 * changed.
 */
export function changedPieces(text: string, before: string | undefined): Piece[] {
  const sameForm =
    before !== undefined &&
    before.length === text.length &&
    before.split('\n').every((line, i) => line.length === text.split('\n')[i]?.length);
  if (!sameForm) return [{ text, changed: false }];
  const pieces: Piece[] = [];
  for (let i = 0; i < text.length; i++) {
    const changed = text[i] !== before[i];
    const last = pieces.at(-1);
    if (last?.changed === changed) last.text += text[i];
    else pieces.push({ text: text[i], changed });
  }
  return pieces;
}

/** Whether a text consists of short lines like a board. Boards are displayed in larger type than prose. */
const isBoard = (text: string): boolean =>
  text.includes('\n') && text.split('\n').every(line => line.length <= 32) && !/[a-z]{3} [a-z]{2}/i.test(text);

export function observationView({ observation, images = [] }: Shown, before: Shown | undefined): TemplateResult {
  const text = images.length > 0 ? observation.replaceAll('<image>', '').trim() : observation;
  const pieces = changedPieces(text, before?.observation).map(({ text: piece, changed }) =>
    changed ? html`<mark>${piece}</mark>` : piece,
  );
  const pictures = images.map(
    (image, i) => html`<img src="data:image/png;base64,${image}" alt="Image ${i + 1} of the observation" />`,
  );
  const words = html`<pre class=${isBoard(text) ? 'board-text' : 'prose-text'} tabindex="0">${pieces}</pre>`;
  return html`<figure class="observation" aria-label="Observation" aria-live="polite">
    ${pictures}${text === '' ? nothing : words}
  </figure>`;
}
