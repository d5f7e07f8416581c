// JSON lines are split at newlines only, however the stream is chunked.
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { linesOf } from '../../../extension/common/stream-lines';
import { markupCorpus } from '../../e2e/fixtures/markup-corpus.mjs';

test('each line arrives complete for any text, in chunks of any size', async () => {
  const texts = [...markupCorpus, 'a\u2028b\u2029c', '\u0085', 'é😀', ''];
  const bytes = Buffer.from(texts.map(text => `${JSON.stringify(text)}\n`).join(''));
  for (const size of [1, 7, 4096]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );
    const stream = Readable.from(pieces, { objectMode: false }).setEncoding('utf8');
    const lines: unknown[] = [];
    for await (const line of linesOf(stream)) lines.push(JSON.parse(line));
    expect(lines).toEqual(texts);
  }
});

test('a last line without a newline counts', async () => {
  const lines: string[] = [];
  for await (const line of linesOf(Readable.from(['a\nb', 'c']))) lines.push(line);
  expect(lines).toEqual(['a', 'bc']);
});
