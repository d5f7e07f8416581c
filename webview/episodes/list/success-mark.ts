// The mark of an episode's success, ✓ or ✗. The glyphs differ, so that users can distinguish them without colour.
import { html, type TemplateResult } from 'lit';

export const successMark = (success: boolean): TemplateResult =>
  html`<span class=${success ? 'mark success' : 'mark failure'} title=${success ? 'success' : 'no success'}
    >${success ? '✓' : '✗'}</span
  >`;
