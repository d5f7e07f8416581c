// Extracts the `ragen` commands of the documentation: those on lines of code blocks, to be run, and those in the text,
// whose names and options are checked. A command of a block starts its line, optionally after `npx`, and ends before a
// comment.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../support/workspace';

export interface DocumentedCommand {
  /** Path from the repository, and line. */
  location: string;
  /** The words after `ragen`, without quotes. */
  words: string[];
}

const markdownOf = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.md'))
    .map(name => join(folder, name))
    .sort();

/** User documentation: the README, docs/ and the editor's walkthrough. */
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

/** The words of a command as a shell splits it; `<a, b or c>` is one word. */
export const wordsOf = (command: string): string[] =>
  (command.match(/(?:<[^>]*>|"[^"]*"|'[^']*'|[^\s"'<]|<)+/g) ?? []).map(word =>
    word.replace(/"([^"]*)"|'([^']*)'/g, (_, double?: string, single?: string) => double ?? single ?? ''),
  );

/** Every command of the code blocks. */
export function blockCommands(): DocumentedCommand[] {
  return pages.flatMap(page =>
    codeLines(readFileSync(join(root, page), 'utf8')).flatMap(({ line, code }) => {
      const command = /^(?:\$ )?(?:npx )?ragen (.*?)(?:\s+# .*)?$/.exec(code)?.[1];
      return command === undefined ? [] : [{ location: `${page}:${line}`, words: wordsOf(command) }];
    }),
  );
}

/** Every command in the text of the pages, and in the comments of the presets. */
export function inlineCommands(): DocumentedCommand[] {
  const presets = readdirSync(join(root, 'media/presets')).filter(name => name.endsWith('.yaml'));
  const inText = (file: string, form: RegExp) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((content, i) =>
        [...content.matchAll(form)].map(([, command]) => ({ location: `${file}:${i + 1}`, words: wordsOf(command) })),
      );
  return [
    ...pages.flatMap(page => inText(page, /`(?:npx )?ragen ([a-z][^`]*)`/g)),
    ...presets.flatMap(name => inText(join('media/presets', name), /^#.*\bragen (eval [^.)]*?)(?:\)|\.$|\. )/g)),
  ];
}
