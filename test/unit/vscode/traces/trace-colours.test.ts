import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { contrast } from '../../../support/colour-vision';

interface Colour {
  id: string;
  defaults: Record<'dark' | 'light' | 'highContrast' | 'highContrastLight', string>;
}
const { contributes } = JSON.parse(readFileSync('package.json', 'utf8')) as { contributes: { colors: Colour[] } };
const shades = contributes.colors.filter(({ id }) => /^ragen\.trace\.(sequential|positive|negative)\d$/.test(id));

// Text and editor background of the themes that ship with VS Code.
const themes = {
  dark: ['#CCCCCC', '#1F1F1F'],
  light: ['#3B3B3B', '#FFFFFF'],
  highContrast: ['#FFFFFF', '#000000'],
  highContrastLight: ['#292929', '#FFFFFF'],
} as const;

const channels = (colour: string) => [1, 3, 5, 7].map(at => Number.parseInt(colour.slice(at, at + 2) || 'ff', 16));

/** A colour with opacity blended onto a background. */
function laidOver(colour: string, background: string): string {
  const [from, onto] = [channels(colour), channels(background)];
  const mixed = [0, 1, 2].map(i => Math.round(from[i] * (from[3] / 255) + onto[i] * (1 - from[3] / 255)));
  return `#${mixed.map(value => value.toString(16).padStart(2, '0')).join('')}`;
}

it('has a shade for every level of every scale', () => {
  expect(shades).toHaveLength(11);
});

it.each(shades)('$id keeps the contrast of the text, and is at most 35 % opaque', ({ defaults }) => {
  for (const [kind, [text, background]] of Object.entries(themes)) {
    const colour = defaults[kind as keyof typeof themes];
    expect(channels(colour)[3] / 255).toBeLessThanOrEqual(0.3505);
    expect(contrast(text, laidOver(colour, background)), kind).toBeGreaterThanOrEqual(4.5);
  }
});

it.each(shades)('$id is nearly as strong in the light theme as in the dark one', ({ defaults }) => {
  const [light, dark] = (['light', 'dark'] as const).map(kind => {
    const [, background] = themes[kind];
    return contrast(laidOver(defaults[kind], background), background);
  });
  expect(light - 1).toBeGreaterThan(0.75 * (dark - 1));
});
