// Prompts of one environment share most of their text: what tells them apart is what a reader wants to see.
import { minimum } from '../../extension/protocol/lists';

export interface PromptParts {
  /** Lines of this prompt alone. */
  own: string;
  /** Lines shared by all, before and after. */
  before: string;
  after: string;
}

/** Each prompt without the lines that all begin and end with. Equal prompts keep their text. */
export function ownParts(prompts: readonly string[]): PromptParts[] {
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
