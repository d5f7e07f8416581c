// Reads the log of a run incrementally: events.jsonl, trainer.log and the finished steps of metrics.jsonl. The first
// read is limited to the newest `mostBytes` of each file, so that a large log opens as fast as a small one.
import { join } from 'node:path';
import { eventEntry, mergeEntries, stepEntry, trainerEntry, type LogEntry } from '../../run-data/log-entries';
import { runFiles } from '../../run-data/run-file-names';
import { GrowingLines } from './json-lines';

/** Maximum bytes of each file that the first read returns. */
const mostBytes = 2 ** 21;

class LogLines extends GrowingLines<LogEntry> {
  constructor(
    folder: string,
    readonly name: string,
    private readonly entryOf: (line: string) => LogEntry | null,
    most: number,
  ) {
    super(join(folder, name), folder, most);
  }

  protected override parseLine(line: string): LogEntry | undefined {
    return this.entryOf(line) ?? undefined;
  }
}

/** New entries of a run's log; see `FreshLines` for `restarted`. */
export interface FreshEntries {
  entries: LogEntry[];
  restarted: boolean;
}

export class RunLog {
  private readonly files: readonly LogLines[];
  private last: LogEntry | null = null;

  constructor(folder: string, most = mostBytes) {
    this.files = [
      new LogLines(folder, runFiles.events, eventEntry, most),
      new LogLines(folder, runFiles.log, trainerEntry, most),
      new LogLines(folder, runFiles.metrics, stepEntry, most),
    ];
  }

  /**
   * Returns the entries since the last call. `restarted`: the run returned to a checkpoint, which cut events or metrics.
   * A rotation of trainer.log is no restart, because the entries before it remain valid.
   */
  async read(): Promise<FreshEntries> {
    const fresh = await Promise.all(this.files.map(file => file.read()));
    const restarted = fresh.some((each, i) => each.restarted && this.files[i].name !== runFiles.log);
    const entries = mergeEntries(
      fresh.map(({ lines }) => lines),
      this.last,
    );
    this.last = entries.at(-1) ?? this.last;
    return { entries, restarted };
  }

  /** Names of the files of which only the newest part was read. */
  get cut(): string[] {
    return this.files.filter(({ cut }) => cut).map(({ name }) => name);
  }
}
