// Divides a growing file of JSON lines by the step in each line, without holding its texts: for each step, the byte
// ranges of its lines. Each call reads a bounded part of the file, so that a large file does not delay the metrics.
import { openRegular } from '../node/bounded-file';
import { lineSlices, readRange, type LineCursor } from '../node/json-lines';
import { looseRecord } from './json-rows';
import type { SourceFolder } from './source-folder';

/** Maximum bytes that one call of `scan` reads, about a second of work. */
const mostScanBytes = 2 ** 26;

/** Bytes [from, to) with complete lines of one step. */
interface StepRange {
  from: number;
  to: number;
}

export class StepRanges {
  private cursor: LineCursor = { offset: 0, skipping: false };
  private ranges = new Map<number, StepRange[]>();
  /** The last bytes before the cursor, to notice that the file was replaced. */
  private tail = Buffer.alloc(0);

  /** `stepIn` returns the step of a line; undefined if the line belongs to no step. */
  constructor(
    private readonly source: SourceFolder,
    private readonly name: string,
    private readonly stepIn: (record: Record<string, unknown>) => number | undefined,
  ) {}

  /** Returns the steps of the file, each with a text that changes when the step gets more lines. */
  get steps(): { step: number; key: string }[] {
    return [...this.ranges].map(([step, ranges]) => ({
      step,
      key: `${this.name} ${ranges.map(({ from, to }) => `${from}-${to}`).join(' ')}`,
    }));
  }

  /** Reads the next part of the file; returns true if more is left. */
  async scan(): Promise<boolean> {
    const handle = await openRegular(this.source.at(this.name), this.source.root);
    try {
      const { size } = await handle.stat();
      const before = await readRange(handle, this.cursor.offset - this.tail.length, this.tail.length);
      if (size < this.cursor.offset || !before.equals(this.tail)) {
        this.cursor = { offset: 0, skipping: false };
        this.ranges = new Map();
      }
      const start = this.cursor.offset;
      for await (const { bytes, last, ...cursor } of lineSlices(handle, this.cursor, size)) {
        this.divide(bytes, cursor.offset - bytes.length);
        [this.cursor, this.tail] = [cursor, Buffer.from(last)];
        if (cursor.offset - start >= mostScanBytes) return true;
      }
      return false;
    } finally {
      await handle.close();
    }
  }

  private divide(bytes: Buffer, begin: number): void {
    for (let from = 0, end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
      const record = looseRecord(bytes.toString('utf8', from, end));
      const step = record && this.stepIn(record);
      if (step === undefined) continue;
      const ranges = this.ranges.get(step) ?? [];
      const last = ranges.at(-1);
      if (last?.to === begin + from) last.to = begin + end + 1;
      else ranges.push({ from: begin + from, to: begin + end + 1 });
      this.ranges.set(step, ranges);
    }
  }

  /** Yields the objects of a step's lines; null for a line that is no object. */
  async *records(step: number): AsyncGenerator<Record<string, unknown> | null> {
    const handle = await openRegular(this.source.at(this.name), this.source.root);
    try {
      for (const { from, to } of this.ranges.get(step) ?? [])
        for await (const { bytes } of lineSlices(handle, { offset: from, skipping: false }, to))
          for (const line of bytes.toString('utf8').split('\n'))
            if (line.trim() !== '') yield looseRecord(line) ?? null;
    } finally {
      await handle.close();
    }
  }
}
