// Index lines with impossible values are rejected, so that a wrong size never causes a gigabyte read.
import { expect, it } from 'vitest';
import { indexLine, isIndexLine } from '../../../extension/run-data/episode-index-line';
import type { EpisodeIndexLine } from '../../../extension/run-data/episode-index-line';

/** A line of one episode of 99 bytes. */
function line(change: (line: EpisodeIndexLine) => void = () => undefined): EpisodeIndexLine {
  const one = indexLine('train', 3, 100);
  for (const column of Object.values(one.columns)) column.push(0);
  one.tags.push('A');
  one.to = 200;
  [one.columns.at[0], one.columns.bytes[0], one.columns.texts[0]] = [100, 99, 60];
  change(one);
  return one;
}

it('a correct line is valid', () => {
  expect(isIndexLine(line())).toBe(true);
  expect(isIndexLine(line(one => (one.columns.advantage[0] = null)))).toBe(true);
  expect(isIndexLine(indexLine('val', 1, 0))).toBe(true);
});

it.each<[string, (line: EpisodeIndexLine) => void]>([
  ['more bytes than the file has', one => (one.columns.bytes[0] = 2 ** 31 - 1)],
  ['texts longer than the line', one => (one.columns.texts[0] = 100)],
  ['a place before its part of the file', one => (one.columns.at[0] = 99)],
  ['a place behind it', one => (one.columns.at[0] = 150)],
  ['no place', one => (one.columns.at[0] = null)],
  ['a word for a number', one => (one.columns.score[0] = 'x' as never)],
  ['a list for a number', one => (one.columns.reward[0] = [1] as never)],
  ['a tag that is no text', one => (one.tags[0] = {} as never)],
  ['a step before the first', one => (one.step = -1)],
  ['bytes before the file', one => (one.from = -1)],
])('a line with %s is invalid', (_, change) => {
  expect(isIndexLine(line(change))).toBe(false);
});
