// A titled section of the column next to the board.
import { html, type TemplateResult } from 'lit';

export const sideSection = (title: string, content: TemplateResult): TemplateResult =>
  html`<section class="side-section"><h2>${title}</h2>${content}</section>`;
