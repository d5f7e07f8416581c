// Reads rows of metrics from a growing log of lines, also if the log is rotated: renamed to `log.1`, while a new file
// gets its name, and earlier ones become `log.2` and so on. The rows of all these files count, the oldest first. A log
// that is truncated instead of renamed is read again from its beginning.
import { join } from 'node:path';
import { counted } from '../common/numbers';
import { GrowingLines } from '../node/json-lines';
import { mostLineBytes } from '../run-data/run-file-names';
import type { MetricRow, MetricSource } from './adapter';
import type { SourceFolder } from './source-folder';

/** Returns the listed files of a log, the oldest first; only the log itself if it was never rotated. */
export function partsOf(source: SourceFolder, name: string): string[] {
  const parts: string[] = [];
  for (let i = 1; source.stat(`${name}.${i}`); i++) parts.unshift(`${name}.${i}`);
  return source.stat(name) ? [...parts, name] : parts;
}

/** Returns the name of the log to which a file of `partsOf` belongs. */
export const logOf = (part: string): string => part.replace(/\.\d+$/, '');

/** Returns a source that reads rows from a log; `parse` returns undefined for a line without metrics. */
export function rowSource(
  source: SourceFolder,
  name: string,
  parse: (line: string) => MetricRow | undefined,
): MetricSource {
  const log = new RotatedLog(source, name, parse);
  return { name, read: add => log.read(add), problems: () => log.problems() };
}

/** Reads one growing file of rows. */
class RowFile extends GrowingLines<never> {
  private add: (row: MetricRow) => void = () => undefined;

  constructor(
    source: SourceFolder,
    name: string,
    private readonly rowIn: (line: string) => MetricRow | undefined,
  ) {
    super(source.at(name), source.root);
  }

  // The rows are passed on one by one, because a list of all rows of a long run would not fit into memory.
  protected override parseLine(line: string): undefined {
    const row = this.rowIn(line);
    if (row) this.add(row);
  }

  /** Returns whether the file was truncated or replaced since the last call. */
  async readRows(add: (row: MetricRow) => void): Promise<boolean> {
    this.add = add;
    return (await this.read()).restarted;
  }
}

class RotatedLog {
  /** The newest file that was read; undefined before the first read. */
  private newest: RowFile | undefined;
  /** Number of lines of earlier files that were too long. */
  private overlong = 0;

  constructor(
    private readonly source: SourceFolder,
    private readonly name: string,
    private readonly parse: (line: string) => MetricRow | undefined,
  ) {}

  /** See MetricSource. */
  async read(add: (row: MetricRow) => void): Promise<boolean> {
    const parts = partsOf(this.source, this.name);
    const at = this.newest ? await this.partOf(this.newest, parts) : -1;
    if (this.newest && at < 0) return this.newest.readRows(add);
    if (this.newest) {
      this.newest.moveTo(this.source.at(parts[at]));
      const isReplaced = await this.newest.readRows(add);
      if (isReplaced) return true;
    }
    for (const part of parts.slice(at + 1)) {
      this.overlong += this.newest?.overlong ?? 0;
      this.newest = new RowFile(this.source, part, this.parse);
      await this.newest.readRows(add);
    }
    return false;
  }

  /** See MetricSource. */
  problems(): string[] {
    const count = this.overlong + (this.newest?.overlong ?? 0);
    const path = join(this.source.root, this.name);
    return count > 0
      ? [`${path} has ${counted(count, 'line')} of more than ${mostLineBytes} bytes: divide these lines`]
      : [];
  }

  /** Returns the index of the part that `file` has become; −1 if there is none, because the file was truncated. */
  private async partOf(file: RowFile, parts: readonly string[]): Promise<number> {
    if (parts.length === 1 && parts[0] === this.name) return 0; // `file` itself notices that it was truncated
    for (let i = parts.length - 1; i >= 0; i--) if (await file.hasMovedTo(this.source.at(parts[i]))) return i;
    return -1;
  }
}
