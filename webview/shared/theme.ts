// The editor's theme as values for charts, because a canvas cannot read CSS variables. VS Code gives the body a class
// for the kind of theme, and writes the variables into the root element's style. A `MutationObserver` reports changes
// of the class and of the variables, and the page redraws.
import { paletteOf, type ThemeKind } from '../../extension/common/palette';
import type { Theme } from '../../extension/run-data/charts/chart-theme';

export type { Theme, ThemeKind };

export function readTheme(): Theme {
  const styles = getComputedStyle(document.documentElement);
  const variable = (name: string, otherwise: string) => styles.getPropertyValue(`--vscode-${name}`).trim() || otherwise;
  const kind = themeKind(document.body.classList);
  const palette = paletteOf(kind);
  const foreground = variable('editor-foreground', variable('foreground', 'currentColor'));
  return {
    kind,
    highContrast: kind.startsWith('high-contrast'),
    palette,
    background: variable('editor-background', 'transparent'),
    foreground,
    muted: variable('descriptionForeground', foreground),
    border: variable('panel-border', variable('contrastBorder', foreground)),
    warning: variable('editorWarning-foreground', palette[5]),
    error: variable('editorError-foreground', palette[1]),
    fontFamily: variable('font-family', 'sans-serif'),
  };
}

/** Returns the kind of theme given by the body's classes; dark if no class is known. */
export function themeKind(classes: Pick<DOMTokenList, 'contains'>): ThemeKind {
  if (classes.contains('vscode-high-contrast-light')) return 'high-contrast-light';
  if (classes.contains('vscode-high-contrast')) return 'high-contrast';
  return classes.contains('vscode-light') ? 'light' : 'dark';
}

/** Calls `changed` with the new theme after a change; several changes in the same task cause one call. */
export function onThemeChange(changed: (theme: Theme) => void): void {
  let pending = false;
  const observer = new MutationObserver(() => {
    if (pending) return;
    pending = true;
    queueMicrotask(() => {
      pending = false;
      changed(readTheme());
    });
  });
  observer.observe(document.body, { attributes: true, attributeFilter: ['class'] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['style'] });
}
