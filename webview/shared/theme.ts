// The editor's theme as charts need it: canvas cannot read CSS variables by itself. VS Code names the kind in a class of the
// body and writes the variables into the style of the root element; both are watched, so that a change of theme redraws.
import { paletteOf, type ThemeKind } from '../../extension/protocol/palette';

export type { ThemeKind };

export interface Theme {
  kind: ThemeKind;
  highContrast: boolean;
  /** Data colours, see palette.ts. */
  palette: readonly string[];
  background: string;
  foreground: string;
  /** Descriptions and axis texts. */
  muted: string;
  /** Grid lines and borders. */
  border: string;
  warning: string;
  error: string;
  fontFamily: string;
}

/** The theme in use now. */
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

/** The kind of theme named by the body's classes; dark when none is. */
export function themeKind(classes: Pick<DOMTokenList, 'contains'>): ThemeKind {
  if (classes.contains('vscode-high-contrast-light')) return 'high-contrast-light';
  if (classes.contains('vscode-high-contrast')) return 'high-contrast';
  return classes.contains('vscode-light') ? 'light' : 'dark';
}

/** Calls back with the new theme once it has changed; several changes in one turn count as one. */
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
