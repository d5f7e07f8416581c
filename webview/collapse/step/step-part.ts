// A part of the page that shows the file of a step: a heading with the step, and the file's content or the reason why
// it is missing.
import { html, nothing, type TemplateResult } from 'lit';
import type { CollapseActions } from '../actions';
import type { StepFile } from '../state';
import { missingNotice } from '../switched-off';
import { type Missing } from '../../../extension/run-data/interpretation/missing-family';

export interface StepPartOptions<T> {
  title: string;
  class: string;
  hidden?: boolean;
  /** The latest answer; null before the first answer. */
  file: StepFile<T> | null;
  /** Whether a file exists at or before the selected step. */
  wanted: boolean;
  missing: Missing;
  actions: Pick<CollapseActions, 'copy' | 'command'>;
  show(content: T): unknown;
}

export function stepPart<T>(options: StepPartOptions<T>): TemplateResult {
  const { title, hidden = false, file, wanted, missing, actions, show } = options;
  const isMissing = !wanted || (file !== null && 'content' in file && file.content === null);
  const step = isMissing || !file ? '' : `step ${file.step}`;
  return html`<section class="part ${options.class}" ?hidden=${hidden}>
    <h2>${title}<span class="muted at">${step}</span></h2>
    <div>${isMissing ? missingNotice(missing, actions) : file ? fileView(file, show) : nothing}</div>
  </section>`;
}

function fileView<T>(file: StepFile<T>, show: (content: T) => unknown): unknown {
  if ('failed' in file) return html`<p role="alert">${file.failed}</p>`;
  return file.content === null ? nothing : show(file.content);
}
