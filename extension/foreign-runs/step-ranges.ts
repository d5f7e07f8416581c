// Divides a growing file of JSON lines by the step in each line, without holding its texts: for each step, the byte
// ranges of its lines. Each call reads a bounded part of the file, so that a large file does not delay the metrics. The
// first call also reads the end of a large file, whose steps are known before the rest is read: they are the newest.
// While the file is read for the first time, a step that is repeated at its end also has its earlier lines.
import { isMissing, openRegular } from '../node/bounded-file';
import { lineSlices, readRange, type LineCursor } from '../node/json-lines';
import { looseRecord } from './json-rows';
import { logOf } from './row-source';
import type { SourceFolder } from './source-folder';
import { WrittenSteps, type StepRange } from './written-steps';

/** Maximum bytes that one call of `scan` reads, about a second of work. */
const mostScanBytes = 2 ** 26;
/** Bytes at the end of a larger file that the first call of `scan` reads. */
const endBytes = 2 ** 23;

export class StepRanges {
  private cursor: LineCursor = { offset: 0, skipping: false };
  private readonly written = new WrittenSteps();
  /** The lines at the end of the file while the cursor has not reached them. */
  private readonly end = new Map<number, StepRange[]>();
  /** The last bytes before the cursor, to notice that the file was replaced. */
  private tail = Buffer.alloc(0);

  /** `stepIn` returns the step of a line; undefined if the line belongs to no step. */
  constructor(
    private readonly source: SourceFolder,
    /** Path relative to the source folder. */
    readonly name: string,
    private readonly stepIn: (record: Record<string, unknown>) => number | undefined,
    private readonly mostBytes = mostScanBytes,
  ) {}

  /**
   * Returns the steps of the file, each with a text that changes when the step gets more lines. While a large file is
   * read for the first time, only the steps at its end are returned: earlier ones may exceed the limit of episodes.
   */
  get steps(): { step: number; key: string }[] {
    return (this.end.size > 0 ? [...this.end.keys()] : this.written.steps).map(step => ({
      step,
      key: `${logOf(this.name)} ${this.rangesOf(step)
        .map(({ from, to }) => `${from}-${to}`)
        .join(' ')}`,
    }));
  }

  /** Whether the file ends with lines of a step, with which the next file begins: the log was rotated within the step. */
  continuesIn(next: StepRanges, step: number): boolean {
    return this.written.ends?.[1] === step && next.written.ends?.[0] === step;
  }

  private rangesOf(step: number): StepRange[] {
    return [...this.written.rangesOf(step), ...(this.end.get(step) ?? [])];
  }

  /** Reads the next part of the file; returns true if more is left. A file that was just renamed is read later. */
  async scan(): Promise<boolean> {
    let handle;
    try {
      handle = await openRegular(this.source.at(this.name), this.source.root);
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
    try {
      const { size } = await handle.stat();
      const before = await readRange(handle, this.cursor.offset - this.tail.length, this.tail.length);
      if (size < this.cursor.offset || !before.equals(this.tail)) {
        this.cursor = { offset: 0, skipping: false };
        this.written.clear();
        this.end.clear();
      }
      const start = this.cursor.offset;
      if (start === 0 && size > this.mostBytes + endBytes) {
        const cursor = { offset: size - endBytes, skipping: true };
        for await (const { bytes, offset } of lineSlices(handle, cursor, size))
          this.divide(bytes, offset - bytes.length, (step, from, to) => this.addToEnd(step, from, to));
      }
      for await (const { bytes, last, ...cursor } of lineSlices(handle, this.cursor, size)) {
        this.divide(bytes, cursor.offset - bytes.length, (step, from, to) => this.written.add(step, from, to));
        [this.cursor, this.tail] = [cursor, Buffer.from(last)];
        this.dropEnd(cursor.offset);
        if (cursor.offset - start >= this.mostBytes) return true;
      }
      this.end.clear();
      return false;
    } finally {
      await handle.close();
    }
  }

  /** Forgets the lines of the end before byte `offset`, which the cursor has reached. */
  private dropEnd(offset: number): void {
    for (const [step, ranges] of this.end) {
      const rest = ranges.filter(({ to }) => to > offset).map(({ from, to }) => ({ from: Math.max(from, offset), to }));
      if (rest.length > 0) this.end.set(step, rest);
      else this.end.delete(step);
    }
  }

  private addToEnd(step: number, from: number, to: number): void {
    const ranges = this.end.get(step) ?? [];
    this.end.set(step, ranges);
    const last = ranges.at(-1);
    if (last?.to === from) last.to = to;
    else ranges.push({ from, to });
  }

  /** Passes on the lines in `bytes`, which begin at byte `begin` of the file. */
  private divide(bytes: Buffer, begin: number, add: (step: number, from: number, to: number) => void): void {
    for (let from = 0, end = bytes.indexOf(0x0a); end >= 0; from = end + 1, end = bytes.indexOf(0x0a, from)) {
      const record = looseRecord(bytes.toString('utf8', from, end));
      const step = record && this.stepIn(record);
      if (step !== undefined) add(step, begin + from, begin + end + 1);
    }
  }

  /** Yields the objects of a step's lines; null for a line that is no object. */
  async *records(step: number): AsyncGenerator<Record<string, unknown> | null> {
    const handle = await openRegular(this.source.at(this.name), this.source.root);
    try {
      for (const { from, to } of this.rangesOf(step))
        for await (const { bytes } of lineSlices(handle, { offset: from, skipping: false }, to))
          for (const line of bytes.toString('utf8').split('\n'))
            if (line.trim() !== '') yield looseRecord(line) ?? null;
    } finally {
      await handle.close();
    }
  }
}
