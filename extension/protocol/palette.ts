// The data palette: eight colours after Okabe and Ito (2008, "Color Universal Design"), moved per kind of theme until each keeps
// 3:1 contrast on the editor's background and any two stay apart under deuteranopia and protanopia (a test holds both).
// The one place with colours of our own; everything else comes from the theme. Pages and the host's pictures share it.

/** Kinds of colour themes, as the editor tells them apart. */
export type ThemeKind = 'light' | 'dark' | 'high-contrast' | 'high-contrast-light';

/** Names by place in a palette, so that a picture can ask for a hue. */
export const hue = { blue: 0, vermillion: 1, green: 2, purple: 3, sky: 4, orange: 5, yellow: 6, grey: 7 } as const;

const light = ['#0069A8', '#D5603F', '#1E9184', '#7A2A6A', '#2B8FE3', '#D07A00', '#595300', '#4D4548'] as const;
const dark = ['#4AA3DF', '#E06C1B', '#2FB58F', '#D583B5', '#8FD8FF', '#E6A817', '#F5EC5A', '#C8C8C8'] as const;

/** The eight colours for a kind of theme, as `#rrggbb`. */
export function paletteOf(kind: ThemeKind): readonly string[] {
  return kind === 'light' || kind === 'high-contrast-light' ? light : dark;
}
