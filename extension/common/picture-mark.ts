// Pictures within the text of a conversation. An environment marks each picture of an observation by `<image>`. In the
// trainer's prompts, a mark also tells which picture it stands for, so that texts can be joined, shortened and quoted by
// windows and memories without a second list. Such a mark contains a text that is random in every process, so neither an
// environment nor a model can write one. A mark is replaced by image tokens before its text is encoded, and by `<image>`
// before it is stored or shown.

/** The mark of a picture in the texts of environments, run folders and pages. */
export const plainMark = '<image>';

/** A picture of the run's store (node/picture-store.ts), with its size in pixels. */
export interface MarkedPicture {
  name: string;
  width: number;
  height: number;
}

const secret = Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join('');
const mark = new RegExp(`\u0002${secret} ([^ \u0002]+) (\\d+) (\\d+)\u0002`, 'g');

/** Returns the mark of a picture in a prompt. */
const markOf = ({ name, width, height }: MarkedPicture): string => `\u0002${secret} ${name} ${width} ${height}\u0002`;

/** Number of marks in the text of an observation. */
export const plainMarks = (text: string): number => text.split(plainMark).length - 1;

/** Returns an observation for prompts: each plain mark becomes the mark of its picture. */
export function withMarks(text: string, pictures: readonly MarkedPicture[]): string {
  if (pictures.length === 0) return text;
  let next = 0;
  return text.replaceAll(plainMark, plain => (next < pictures.length ? markOf(pictures[next++]) : plain));
}

/** Returns the texts between the pictures of a prompt, and the pictures, in their order. Empty texts are left out. */
export function splitAtMarks(text: string): (string | MarkedPicture)[] {
  const parts: (string | MarkedPicture)[] = [];
  let from = 0;
  for (const found of text.matchAll(mark)) {
    if (found.index > from) parts.push(text.slice(from, found.index));
    parts.push({ name: found[1], width: Number(found[2]), height: Number(found[3]) });
    from = found.index + found[0].length;
  }
  if (from < text.length) parts.push(text.slice(from));
  return parts;
}

/**
 * Returns a prompt's text for a memory of the workspace. Each mark becomes a placeholder that depends on the picture
 * alone, so a memory that cuts or compares texts does the same in every process.
 */
export const withPlaceholders = (text: string): string =>
  text.replace(mark, (_, name: string, width: string, height: string) =>
    placeholderOf({ name, width: Number(width), height: Number(height) }),
  );

const placeholderOf = ({ name, width, height }: MarkedPicture): string => `\u0002${name} ${width} ${height}\u0002`;

/** Returns the text of a memory with the marks of the pictures of `texts` in place of their placeholders. */
export function withQuotedMarks(text: string, texts: readonly string[]): string {
  const quoted = new Map<string, string>();
  for (const part of texts.flatMap(splitAtMarks))
    if (typeof part !== 'string') quoted.set(placeholderOf(part), markOf(part));
  return [...quoted].reduce((result, [placeholder, marked]) => result.replaceAll(placeholder, () => marked), text);
}

/** Returns a prompt's text with plain marks, as it is stored and shown. */
export const withPlainMarks = (text: string): string => text.replace(mark, plainMark);
