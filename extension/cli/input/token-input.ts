// The input of `ragen score` and `ragen generate`: rows of token ids or chat messages, as a JSON array or JSON lines,
// from a file or standard input. All rows are checked before a model is loaded. An error is one sentence with file,
// line and path of the value, such as rows.json:7: [3].tokens[2].
import { readFileSync } from 'node:fs';
import { text as readStream } from 'node:stream/consumers';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { shown } from '../../trainer/config/config-error';
import type { ChatMessage } from '../../models/tokenizer/chat-template';

/** A row of the input; `location` returns the row's place in the input, for error messages. */
export type InputRow = { location: () => string } & ({ tokens: number[] } | { messages: ChatMessage[] });

const roles: readonly ChatMessage['role'][] = ['system', 'user', 'assistant'];
const forms = '{"tokens": […]} or {"messages": [{"role", "content"}, …]}';

/** Reads the rows of a file, or of standard input if `file` is `-`. Throws a UserError. */
export async function readInput(file: string): Promise<InputRow[]> {
  const text = file === '-' ? await readStream(process.stdin) : readText(file);
  return parseInput(text, file === '-' ? 'standard input' : file);
}

/** Parses and checks an input; `file` is used in errors only. Throws a UserError. */
export function parseInput(content: string, file: string): InputRow[] {
  const text = content.replace(/^\uFEFF/, '');
  const start = text.trimStart()[0];
  if (start === undefined) throw new UserError(`${file} is empty: give a JSON array of ${forms}`);
  if (start === '{') return parseLines(text, file);
  const values = parseJson(text, file, 1);
  if (!Array.isArray(values))
    throw new UserError(`${file} contains ${kindOf(values)}, not an array: give a JSON array of ${forms}`);
  const lineOf = lazily(() => elementLines(text));
  return values.map((value, i) => checkRow(value, `[${i}]`, () => `${file}:${lineOf()[i]}`));
}

/** Parses one JSON object per line; empty lines are skipped. */
function parseLines(text: string, file: string): InputRow[] {
  const rows: InputRow[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      if (isJson(text)) throw new UserError(`${file} contains an object, not an array: put the object into [ ]`);
      throw new UserError(
        `${file}:${i + 1} is not JSON (${(error as Error).message}): give a JSON array, or one object per line`,
      );
    }
    rows.push(checkRow(value, `[${rows.length}]`, () => `${file}:${i + 1}`));
  }
  return rows;
}

function checkRow(value: unknown, path: string, location: () => string): InputRow {
  const refuse = (below: string, found: string, remedy: string): never => {
    throw new UserError(`${location()}: ${path}${below} ${found}: ${remedy}`);
  };
  if (!isRecord(value)) return refuse('', `is ${kindOf(value)}`, `give ${forms}`);
  const { tokens, messages } = value;
  const here = { location: () => `${location()}: ${path}` };
  if (tokens !== undefined && messages !== undefined)
    return refuse('', 'has both "tokens" and "messages"', 'give one of them');
  if (tokens !== undefined) {
    if (!Array.isArray(tokens)) return refuse('.tokens', `is ${kindOf(tokens)}`, 'give an array of token ids');
    if (tokens.length === 0) return refuse('.tokens', 'is empty', 'give at least one token id');
    const bad = tokens.findIndex(token => !Number.isInteger(token) || token < 0);
    if (bad >= 0) return refuse(`.tokens[${bad}]`, `is ${shown(tokens[bad])}`, 'use a whole number from 0 on');
    return { ...here, tokens: tokens as number[] };
  }
  if (messages === undefined) return refuse('', 'has neither "tokens" nor "messages"', `give ${forms}`);
  if (!Array.isArray(messages)) return refuse('.messages', `is ${kindOf(messages)}`, 'give an array of messages');
  if (messages.length === 0) return refuse('.messages', 'is empty', 'give at least one message');
  messages.forEach((message: unknown, i) => {
    const at = `.messages[${i}]`;
    if (!isRecord(message)) return refuse(at, `is ${kindOf(message)}`, 'give {"role", "content"}');
    const { role, content } = message;
    if (!roles.includes(role as ChatMessage['role']))
      return refuse(`${at}.role`, `is ${shown(role)}`, `use one of ${roles.join(', ')}`);
    if (typeof content !== 'string') return refuse(`${at}.content`, `is ${shown(content)}`, 'give a text');
  });
  return { ...here, messages: messages as ChatMessage[] };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const remedies: Record<string, string> = {
      ENOENT: 'give the path of an existing file to --input',
      EISDIR: 'give a JSON file to --input, not a folder',
      EACCES: 'allow access to the file',
      ERR_STRING_TOO_LONG: 'split the file, which is longer than 512 MB',
    };
    throw new UserError(
      `${file} cannot be read (${code}): ${(code && remedies[code]) ?? `${message}: check the file`}`,
    );
  }
}

function parseJson(text: string, file: string, firstLine: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const { message } = error as Error;
    const position = /at position (\d+)/.exec(message)?.[1];
    const end = message.includes('end of JSON') ? text.trimEnd().length : undefined;
    const at = position === undefined ? end : Number(position);
    const line = at === undefined ? '' : `:${firstLine + text.slice(0, at).split('\n').length - 1}`;
    throw new UserError(
      `${file}${line} is not JSON (${message.replaceAll(/\s+/g, ' ')}): give a JSON array, or one object per line`,
    );
  }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** Returns, for each element of a valid JSON array, the line on which the element begins. */
function elementLines(text: string): number[] {
  const lines: number[] = [];
  let line = 1;
  let depth = 0;
  let awaited = false; // whether an element of the outer array begins at the next non-blank character
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '\n') line++;
    if (/\s/.test(c)) continue;
    if (awaited && c !== ']') lines.push(line);
    awaited = false;
    if (c === '"') while (text[++i] !== '"') i += Number(text[i] === '\\');
    else if (c === '[' || c === '{') awaited = ++depth === 1;
    else if (c === ']' || c === '}') depth--;
    else if (c === ',') awaited = depth === 1;
  }
  return lines;
}

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `the ${typeof value} ${shown(value)}`;
}
