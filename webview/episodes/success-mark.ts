// Whether an episode succeeded, as ✓ or ✗, which differ in shape as well as colour.
import { html, type TemplateResult } from 'lit';

export const successMark = (success: boolean): TemplateResult =>
  html`<span class=${success ? 'mark success' : 'mark failure'} title=${success ? 'success' : 'no success'}
    >${success ? '✓' : '✗'}</span
  >`;
