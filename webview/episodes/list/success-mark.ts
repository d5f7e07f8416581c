// The mark of an episode's success, ✓ or ✗; the glyphs differ, so that colour is not needed to tell them apart.
import { html, type TemplateResult } from 'lit';

export const successMark = (success: boolean): TemplateResult =>
  html`<span class=${success ? 'mark success' : 'mark failure'} title=${success ? 'success' : 'no success'}
    >${success ? '✓' : '✗'}</span
  >`;
