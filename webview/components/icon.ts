// Small 16 × 16 icons in the text colour, drawn as strokes, so that they are sharp at every scale and follow the theme.
import { html, type TemplateResult } from 'lit';

const paths = {
  add: 'M8 3v10M3 8h10',
  pause: 'M5.5 3v10M10.5 3v10',
  play: 'M5 3l8 5-8 5z',
  stop: 'M4 4h8v8H4z',
  table: 'M2.5 3.5h11v9h-11zM2.5 6.5h11M2.5 9.5h11M6.5 3.5v9',
  chart: 'M2.5 2.5v11h11M4.5 10.5l3-4 2.5 2 3.5-5',
  grow: 'M9.5 2.5h4v4M13.5 2.5l-4.5 4.5M6.5 13.5h-4v-4M2.5 13.5l4.5-4.5',
  shrink: 'M13.5 6.5h-4v-4M9.5 6.5l4-4M2.5 9.5h4v4M6.5 9.5l-4 4',
  more: 'M3 7.5h1v1h-1zM7.5 7.5h1v1h-1zM12 7.5h1v1h-1z',
  export: 'M8 2.5v7.5M5 7l3 3 3-3M3 13.5h10',
  left: 'M10 3.5L5.5 8l4.5 4.5',
  right: 'M6 3.5L10.5 8 6 12.5',
  settings: 'M2.5 5h6M12.5 5h1M10.5 3.2v3.6M2.5 11h1M7.5 11h6M5.5 9.2v3.6',
  close: 'M4 4l8 8M12 4l-8 8',
  newest: 'M3.5 3.5L8 8l-4.5 4.5M8.5 3.5L13 8l-4.5 4.5',
} as const;

export type IconName = keyof typeof paths;

/** Renders an icon. It has no accessible name, because the surrounding control has one. */
export const icon = (name: IconName): TemplateResult =>
  html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
    <path d=${paths[name]} fill="none" stroke="currentColor" stroke-width="1.2" stroke-linejoin="round"></path>
  </svg>`;
