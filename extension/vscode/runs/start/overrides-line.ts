// Splits and checks a line of text with overrides. Must not import `vscode`.

/**
 * Splits a line of overrides as a shell does: at blanks outside quotes, brackets and braces. Quotes around a whole
 * value are removed.
 */
export function splitOverrides(text: string): string[] {
  const parts = text.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|\{[^}]*\}|[^\s"'[{])+/g) ?? [];
  return parts.map(part => part.replace(/^([^=]*=)?(["'])(.*)\2$/, '$1$3'));
}

/** Joins overrides to a line that `splitOverrides` splits into the same overrides. */
export const joinOverrides = (overrides: readonly string[]): string =>
  overrides.map(each => (splitOverrides(each).length === 1 ? each : `"${each}"`)).join(' ');

/** Returns the problem of a line of overrides in one sentence, or undefined if the line is valid. */
export function overridesProblem(text: string): string | undefined {
  const wrong = splitOverrides(text).find(part => !/^[+~]{0,2}[\w.@/-]+=/.test(part) && !/^~[\w.]+$/.test(part));
  return wrong === undefined
    ? undefined
    : `${wrong} is not an override: write key=value, such as trainer.total_training_steps=20`;
}
