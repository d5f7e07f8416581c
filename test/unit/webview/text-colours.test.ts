// Colours of text on the pages have the contrast that WCAG asks for (4.5) where the editor's own colour lacks it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { contrast } from '../../support/colour-vision';

it('no text has the colour of warning lines, which is too pale in the light theme', () => {
  expect(contrast('#bf8803', '#ffffff')).toBeLessThan(4.5); // editorWarning.foreground of the light theme
  expect(contrast('#855f00', '#ffffff')).toBeGreaterThan(4.5); // list.warningForeground, the value of --warning
  const styles = readdirSync('webview', { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.css'));
  expect(styles.length).toBeGreaterThan(8);
  const pale = styles.filter(file =>
    /(?<![-\w])color:[^;]*editorWarning-foreground/.test(readFileSync(join('webview', file), 'utf8')),
  );
  expect(pale).toEqual([]);
});

it('the titles of sections of charts keep their triangle, which any display but list-item hides', () => {
  const style = readFileSync('webview/compare/compare.css', 'utf8');
  expect(style).toMatch(/summary\.group-title \{[^}]*display: list-item/);
});
