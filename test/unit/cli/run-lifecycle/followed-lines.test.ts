// Following a log that is cut and continued while it is read: each value is yielded once, in the order of the file.
import { appendFileSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { FollowedLines } from '../../../../extension/cli/run-lifecycle/followed-lines';
import { readValues } from '../../../../extension/trainer/store/line-log';

const folder = mkdtempSync(join(tmpdir(), 'ragen-follow-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function followed() {
  const file = join(folder, `${files++}.jsonl`);
  const lines = new FollowedLines(offset => readValues(file, value => value as { step: number; x: string }, offset));
  const append = (step: number, x: string): void => appendFileSync(file, `${JSON.stringify({ step, x })}\n`);
  return { file, append, unread: () => [...lines.unread()].map(({ step, x }) => `${step}:${x}`) };
}

describe('a followed log', () => {
  it('yields lines that were appended since the last reading', () => {
    const { append, unread } = followed();
    expect(unread()).toEqual([]);
    append(1, 'a');
    append(2, 'a');
    expect(unread()).toEqual(['1:a', '2:a']);
    append(3, 'a');
    expect(unread()).toEqual(['3:a']);
  });

  it('yields the lines after a cut, even if the file is longer again when it is read', () => {
    const { file, append, unread } = followed();
    append(1, 'a');
    const { size } = statSync(file);
    append(2, 'short');
    append(3, 'short');
    expect(unread()).toHaveLength(3);
    truncateSync(file, size);
    append(2, 'a much longer line than before');
    append(3, 'b');
    append(4, 'b');
    expect(unread()).toEqual(['2:a much longer line than before', '3:b', '4:b']);
  });

  it('still reports a damaged line of a log that was not cut', () => {
    const { file, append, unread } = followed();
    append(1, 'a');
    expect(unread()).toEqual(['1:a']);
    appendFileSync(file, 'no json\n');
    expect(unread).toThrow(/the line at byte \d+ of .* is damaged/);
  });

  it('ends with the content of the file, whatever is cut and appended between readings', () => {
    const cut = fc.record({ keep: fc.double({ min: 0, max: 1, noNaN: true }) });
    const write = fc.record({ texts: fc.array(fc.string({ maxLength: 12 }), { maxLength: 5 }) });
    fc.assert(
      fc.property(fc.array(fc.oneof(cut, write, fc.constant('read' as const)), { maxLength: 30 }), actions => {
        const { file, append, unread } = followed();
        const written: { step: number; text: string; end: number }[] = [];
        const shown: string[] = [];
        const read = (): void => void shown.push(...unread());
        let step = 0;
        for (const action of actions) {
          if (action === 'read') read();
          else if ('keep' in action) {
            written.splice(Math.floor(action.keep * written.length));
            if (written.length > 0 || step > 0) truncateSync(file, written.at(-1)?.end ?? 0);
          } else
            for (const text of action.texts) {
              append(++step, text);
              written.push({ step, text, end: statSync(file).size });
            }
        }
        // A reader learns of a cut from the lines that follow it.
        append(++step, 'last');
        read();
        expect(shown.at(-1)).toBe(`${step}:last`);
        for (const { step: at, text } of written) expect(shown).toContain(`${at}:${text}`);
      }),
      { numRuns: 200 },
    );
  });
});
