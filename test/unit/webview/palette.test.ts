import { describe, expect, it } from 'vitest';
import { dashes, paletteOf, withAlpha } from '../../../webview/shared/run-colours';
import { themeKind } from '../../../webview/shared/theme';
import { contrast, distance, visions } from '../../support/colour-vision';

// Editor backgrounds of the themes that ship with VS Code.
const backgrounds = {
  light: ['#ffffff', '#f8f8f8', '#fdfdfd'],
  dark: ['#1f1f1f', '#1e1e1e', '#252526', '#282c34', '#272822'],
  'high-contrast': ['#000000'],
  'high-contrast-light': ['#ffffff'],
} as const;

describe.each(Object.entries(backgrounds))('the palette of %s themes', (kind, editors) => {
  const palette = paletteOf(kind as keyof typeof backgrounds);

  it('keeps 3:1 contrast on the editor background', () => {
    for (const editor of editors)
      for (const colour of palette)
        expect(contrast(colour, editor), `${colour} on ${editor}`).toBeGreaterThanOrEqual(3);
  });

  it.each(Object.entries(visions))('keeps colours distinguishable with %s colour vision', (_, vision) => {
    palette.forEach((a, i) =>
      palette.slice(i + 1).forEach(b => expect(distance(a, b, vision), `${a} and ${b}`).toBeGreaterThanOrEqual(15)),
    );
  });
});

it('lines also differ by dashes', () => {
  expect(new Set(dashes.map(String)).size).toBe(paletteOf('light').length);
});

it('withAlpha adds opacity', () => expect(withAlpha('#0069A8', 0.5)).toBe('rgba(0, 105, 168, 0.5)'));

it.each([
  [['vscode-light'], 'light'],
  [['vscode-dark'], 'dark'],
  [['vscode-high-contrast'], 'high-contrast'],
  [['vscode-high-contrast-light', 'vscode-high-contrast'], 'high-contrast-light'],
  [[], 'dark'],
])('body classes %j mean %s', (classes, kind) => {
  expect(themeKind({ contains: name => classes.includes(name) })).toBe(kind);
});
