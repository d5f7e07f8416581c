// Reads the log of a run incrementally: events.jsonl, trainer.log and the finished steps of metrics.jsonl. The first
// read is limited to the newest `mostBytes` of each file, so that a large log opens as fast as a small one.
import { join } from 'node:path';
import {
  eventLine,
  markedEntries,
  mergeEntries,
  stepEntry,
  trainerEntry,
  type EventLine,
  type LogEntry,
} from '../../run-data/log-entries';
import { runFiles } from '../../run-data/run-file-names';
import { GrowingLines } from '../../node/json-lines';

/** Maximum bytes of each file that the first read returns. */
const mostBytes = 2 ** 21;

class LogLines<T> extends GrowingLines<T> {
  constructor(
    folder: string,
    readonly name: string,
    private readonly entryOf: (line: string) => T | null,
    most: number,
  ) {
    super(join(folder, name), folder, most);
  }

  protected override parseLine(line: string): T | undefined {
    return this.entryOf(line) ?? undefined;
  }
}

/** New entries of a run's log; see `FreshLines` for `restarted`. */
export interface FreshEntries {
  entries: LogEntry[];
  restarted: boolean;
}

export class RunLog {
  private readonly events: LogLines<EventLine>;
  private readonly output: LogLines<LogEntry>;
  private readonly steps: LogLines<LogEntry>;
  /** The lines of events.jsonl that were read so far, and their entries. */
  private eventLines: EventLine[] = [];
  private marked: LogEntry[] = [];
  private last: LogEntry | null = null;

  constructor(folder: string, most = mostBytes) {
    this.events = new LogLines(folder, runFiles.events, eventLine, most);
    this.output = new LogLines(folder, runFiles.log, trainerEntry, most);
    this.steps = new LogLines(folder, runFiles.metrics, stepEntry, most);
  }

  /**
   * Returns the entries since the last call. `restarted`: entries of earlier calls are no longer valid, because the run
   * returned to a checkpoint, which cut events or metrics, or because the mark of an earlier event has moved to another
   * step. A rotation of trainer.log is no restart, because the entries before it remain valid.
   */
  async read(): Promise<FreshEntries> {
    const [events, output, steps] = await Promise.all([this.events.read(), this.output.read(), this.steps.read()]);
    const before = this.marked;
    this.eventLines = [...(events.restarted ? [] : this.eventLines), ...events.lines];
    if (events.lines.length > 0) this.marked = markedEntries(this.eventLines);
    const isMoved = before.some(({ markedAt }, i) => this.marked[i]?.markedAt !== markedAt);
    const fresh = this.marked.slice(this.marked.length - events.lines.length);
    const entries = mergeEntries([fresh, output.lines, steps.lines], this.last);
    this.last = entries.at(-1) ?? this.last;
    return { entries, restarted: events.restarted || steps.restarted || isMoved };
  }

  /** Names of the files of which only the newest part was read. */
  get cut(): string[] {
    return [this.events, this.output, this.steps].filter(({ cut }) => cut).map(({ name }) => name);
  }
}
