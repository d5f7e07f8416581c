// The `ragen` commands that the documentation shows: those on lines of code blocks, to be run, and those in the text, to be checked for names
// and options. A command of a block begins its line, after `npx` or not, and ends before a comment.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './workspace';

export interface DocumentedCommand {
  /** Path from the repository, and line. */
  place: string;
  /** The words behind `ragen`, quotes resolved. */
  words: string[];
}

const markdownOf = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md'))
    .map(name => join(folder, name))
    .sort();

/** Pages for people: the README, docs/ and the walkthrough of the editor. */
export const pages: readonly string[] = ['README.md', ...markdownOf('docs'), ...markdownOf('media/walkthrough')];

/** Lines of a page's code blocks, fenced or indented, with their numbers from 1. */
function codeLines(text: string): { line: number; code: string }[] {
  let fence: string | undefined;
  return text.split('\n').flatMap((content, i) => {
    const mark = /^\s*(```+|~~~+)/.exec(content)?.[1];
    if (mark !== undefined && (fence === undefined || mark === fence)) {
      fence = fence === undefined ? mark : undefined;
      return [];
    }
    const indented = /^ {4}(.*)/.exec(content)?.[1];
    const code = fence === undefined ? indented : content;
    return code === undefined ? [] : [{ line: i + 1, code: code.trim() }];
  });
}

/** The words of a command; `<a, b or c>` is one. */
export const wordsOf = (command: string): string[] =>
  (command.match(/(?:<[^>]*>|"[^"]*"|'[^']*'|[^\s"'<]|<)+/g) ?? []).map(word => word.replace(/["']/g, ''));

/** Every command of a code block. */
export function blockCommands(): DocumentedCommand[] {
  return pages.flatMap(page =>
    codeLines(readFileSync(join(root, page), 'utf8')).flatMap(({ line, code }) => {
      const command = /^(?:\$ )?(?:npx )?ragen (.*?)(?:\s+# .*)?$/.exec(code)?.[1];
      return command === undefined ? [] : [{ place: `${page}:${line}`, words: wordsOf(command) }];
    }),
  );
}

/** Every command in the text of a page, and in the comments of a preset. */
export function inlineCommands(): DocumentedCommand[] {
  const presets = readdirSync(join(root, 'media/presets')).filter(name => name.endsWith('.yaml'));
  const inText = (file: string, form: RegExp) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((content, i) =>
        [...content.matchAll(form)].map(([, command]) => ({ place: `${file}:${i + 1}`, words: wordsOf(command) })),
      );
  return [
    ...pages.flatMap(page => inText(page, /`(?:npx )?ragen ([a-z][^`]*)`/g)),
    ...presets.flatMap(name => inText(join('media/presets', name), /^#.*\bragen (eval [^.)]*?)(?:\)|\.$|\. )/g)),
  ];
}
