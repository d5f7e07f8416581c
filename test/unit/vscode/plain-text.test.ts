// Untrusted texts on the editor's own surfaces, checked against the patterns of VS Code 1.139's sources:
// base/common/linkedText.ts for notifications and prompts, base/common/iconLabels.ts for status bar, lists and lenses.
import { expect, test } from 'vitest';
import { plain, unlinked } from '../../../extension/vscode/plain-text';
import { editorMarkup, markupCorpus } from '../../e2e/fixtures/markup-corpus.mjs';

const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;
const icon = /(\\)?\$\(([A-Za-z0-9-]+(?:~[A-Za-z]+)?)\)/;

test('no text is parsed as a link or an icon, and all look unchanged', () => {
  expect(editorMarkup.filter(text => link.test(text)).length).toBeGreaterThan(3); // the raw texts do contain links
  expect(editorMarkup.filter(text => icon.test(text)).length).toBeGreaterThan(1);
  for (const text of [...markupCorpus, '[a](command:b)[c](command:d)', '$($(bug))', '](', '$(']) {
    const shown = plain(text);
    expect(shown, text).not.toMatch(link);
    expect(shown, text).not.toMatch(icon);
    expect(shown.replaceAll('\u2060', '')).toBe(text);
    expect(plain(shown)).toBe(shown);
  }
  expect(plain('step 3 of 4 (75 %), costs $5')).toBe('step 3 of 4 (75 %), costs $5');
});

test('no bare address becomes a link in Markdown (GitHub’s autolinks: after a scheme, after www., around an @)', () => {
  const addresses = /(?:https?|ftp):\/\/|www\.[a-z\d]|[\w.+-]@[a-z\d]/i;
  for (const text of [
    ...markupCorpus,
    'see www.evil.example',
    'WWW.evil.example',
    'a@evil.example',
    'ftp://evil.example',
  ]) {
    expect(unlinked(text), text).not.toMatch(addresses);
    expect(unlinked(text).replaceAll('\u2060', '')).toBe(text);
  }
});
