// Extracts the lines in which prompts differ, because prompts of the same environment share most of their text.
import { minimum } from '../../../extension/common/lists';

export interface PromptParts {
  /** Lines in which this prompt may differ from the other prompts. */
  own: string;
  /** Lines shared by all prompts, before and after `own`. */
  before: string;
  after: string;
}

/**
 * Splits each prompt into three parts: the leading lines that all prompts share, its own lines, and the trailing lines
 * that all prompts share. If all prompts are equal, `own` is the complete prompt.
 */
export function differingParts(prompts: readonly string[]): PromptParts[] {
  const split = prompts.map(text => text.split('\n'));
  const shortest = minimum(split.map(lines => lines.length));
  const shared = (line: (lines: string[], i: number) => string) => {
    let count = 0;
    while (count < shortest && split.every(lines => line(lines, count) === line(split[0], count))) count++;
    return count;
  };
  const head = shared((lines, i) => lines[i]);
  if (head === shortest) return prompts.map(text => ({ own: text, before: '', after: '' }));
  const tail = Math.min(
    shared((lines, i) => lines[lines.length - 1 - i]),
    shortest - head,
  );
  return split.map(lines => ({
    before: lines.slice(0, head).join('\n'),
    own: lines.slice(head, lines.length - tail).join('\n'),
    after: lines.slice(lines.length - tail).join('\n'),
  }));
}
