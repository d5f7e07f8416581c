// The mark of an episode's success: ✓, ✗, or – if the success is unknown. The glyphs differ, so that users can distinguish them without colour.
import { html, type TemplateResult } from 'lit';
import { successLabel } from '../../../extension/run-data/episode';

export const successMark = (success: boolean | null): TemplateResult =>
  html`<span
    class=${success === null ? 'mark muted' : success ? 'mark success' : 'mark failure'}
    title=${successLabel(success)}
    >${success === null ? '–' : success ? '✓' : '✗'}</span
  >`;
