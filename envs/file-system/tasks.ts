// The files and the task of an episode, drawn from its seed. A task asks for an answer (find, read), or for a change of
// the files (edit, tidy); a change is right if the files then equal `expected`.
import type { Pcg64 } from '../api/random/pcg64';
import { callAction } from '../api/tools/call-action';
import { MemoryFiles } from './memory-files';

export const kinds = ['find', 'read', 'edit', 'tidy'] as const;
export type Kind = (typeof kinds)[number];

export interface Task {
  text: string;
  files: MemoryFiles;
  /** Files after the task; undefined if the task changes nothing. */
  expected?: MemoryFiles;
  /** The right answer; undefined if any answer will do, because the files count. */
  answer?: string;
  /** Returns the calls that lead from the given files to the answer. */
  calls(files: MemoryFiles): string[];
}

const folders = ['bin', 'docs', 'lib', 'logs', 'src', 'tests'];
const names = ['alpha', 'beta', 'delta', 'gamma', 'kappa', 'lambda', 'omega', 'sigma', 'theta', 'zeta'];
const keys = ['depth', 'height', 'limit', 'port', 'size', 'width'];
export const done = 'done';

/** Draws a task of a kind over `count` files. */
export function drawTask(random: Pcg64, kind: Kind, count: number): Task {
  const pick = <T>(from: readonly T[]): T => from[random.integers(0, from.length)];
  const paths = new Set<string>();
  while (paths.size < count) paths.add(`/${pick(folders)}/${pick(names)}.txt`);
  const key = pick(keys);
  const number = () => random.integers(10, 1000);
  const texts = [...paths].map((path): [string, string] => [path, keys.map(each => `${each}=${number()}`).join('\n')]);
  const at = random.integers(0, texts.length);
  const [path, text] = texts[at];
  const value = new RegExp(`^${key}=(\\d+)$`, 'm').exec(text)![1];
  if (kind === 'read') {
    const task = `What is the value of ${key} in ${path}?`;
    const calls = () => [callAction([{ name: 'read', arguments: { path } }])];
    return { text: task, files: new MemoryFiles(texts), answer: value, calls };
  }
  if (kind === 'find') {
    const word = `code-${random.integers(1000, 10_000)}`;
    texts[at][1] = `${text}\n${word}`;
    const calls = () => [callAction([{ name: 'search', arguments: { text: word } }])];
    return {
      text: `Which file contains ${word}? Answer with its path.`,
      files: new MemoryFiles(texts),
      answer: path,
      calls,
    };
  }
  if (kind === 'edit') {
    const changed = text.replace(`${key}=${value}`, `${key}=${Number(value) + 1}`);
    const expected = new MemoryFiles(texts.map(each => (each[0] === path ? [path, changed] : each)));
    const calls = (files: MemoryFiles) =>
      files.equals(expected) ? [] : [callAction([{ name: 'write', arguments: { path, text: changed } }])];
    const task = `Increase ${key} in ${path} by 1 and leave the rest of the file as it is. Then answer ${done}.`;
    return { text: task, files: new MemoryFiles(texts), expected, calls };
  }
  const waste = texts.filter((_, i) => i % 3 === at % 3).map(([each]) => each.replace('.txt', '.tmp'));
  const expected = new MemoryFiles(texts);
  const files = new MemoryFiles([...texts, ...waste.map((each): [string, string] => [each, 'waste'])]);
  const calls = (now: MemoryFiles) => {
    const left = now.entries().filter(([each]) => each.endsWith('.tmp'));
    return left.length > 0 ? [callAction(left.map(([each]) => ({ name: 'remove', arguments: { path: each } })))] : [];
  };
  return { text: `Remove all files whose names end with .tmp. Then answer ${done}.`, files, expected, calls };
}
