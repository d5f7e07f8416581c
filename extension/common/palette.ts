// Data palette: eight colours after Okabe and Ito (2008, "Color Universal Design"), adjusted per kind of theme. Each
// colour has a contrast of at least 3:1 on the editor background. Every pair of colours is distinguishable for people
// with deuteranopia or protanopia. A test checks contrast and distinguishability. All other colours come from the
// theme. The palette is used by pages and by pictures that the extension host draws.

/** Kinds of colour themes in VS Code. */
export type ThemeKind = 'light' | 'dark' | 'high-contrast' | 'high-contrast-light';

/** Index of each hue in a palette. */
export const hue = { blue: 0, vermillion: 1, green: 2, purple: 3, sky: 4, orange: 5, yellow: 6, grey: 7 } as const;

const light = ['#0069A8', '#D5603F', '#1E9184', '#7A2A6A', '#2B8FE3', '#D07A00', '#595300', '#4D4548'] as const;
const dark = ['#4AA3DF', '#E06C1B', '#2FB58F', '#D583B5', '#8FD8FF', '#E6A817', '#F5EC5A', '#C8C8C8'] as const;

/** Returns the eight colours for a kind of theme, as `#rrggbb`. */
export function paletteOf(kind: ThemeKind): readonly string[] {
  return kind === 'light' || kind === 'high-contrast-light' ? light : dark;
}

/** Dash patterns that distinguish lines without colour (high contrast). The first is solid. */
export const dashes: readonly (readonly number[])[] = [
  [],
  [6, 3],
  [2, 2],
  [8, 3, 2, 3],
  [12, 4],
  [4, 6],
  [1, 4],
  [10, 2, 2, 2, 2, 2],
];
