// The state of the Log page. Only the reducer changes it. Entries are numbered in the order of their arrival; the number
// is the key of an entry. List items are derived from entries, level, order and search.
import type { RunSummary } from '../../extension/protocol/page-state';
import { logLevels, type LogEntry, type LogLevel } from '../../extension/run-data/log-entries';
import type { ListSource } from '../components/virtual-list';

/** Settings that are restored when the page is shown again. */
export interface ViewSettings {
  /** The least severe level that is listed. */
  readonly level: LogLevel;
  /** `steps`: newest first, under headings of steps. `severity`: errors first, then warnings; newest first. */
  readonly order: 'steps' | 'severity';
}

/** Version of `ViewSettings`; increased when the meaning of a setting changes. */
export const settingsSchema = 1;

export const firstSettings: ViewSettings = { level: 'info', order: 'steps' };

export type LogItem =
  | { readonly kind: 'step'; readonly key: string; readonly step: number | null }
  | { readonly kind: 'entry'; readonly key: string; readonly entry: LogEntry };

export interface LogState {
  /** Message of a failed snapshot request; null if there was no failure. */
  readonly failure: string | null;
  /** Null until the first snapshot. */
  readonly run: RunSummary | null;
  readonly entries: readonly LogEntry[];
  readonly cut: readonly string[];
  readonly search: string;
  /** Key of the entry whose details are shown. */
  readonly selected: string | null;
  readonly settings: ViewSettings;
  readonly list: LogList;
}

/** The listed items in order. */
export class LogList implements ListSource<LogItem> {
  private readonly indices: ReadonlyMap<string, number>;

  constructor(private readonly items: readonly LogItem[]) {
    this.indices = new Map(items.map(({ key }, i) => [key, i]));
  }

  get length(): number {
    return this.items.length;
  }

  at(index: number): LogItem {
    return this.items[index];
  }

  find(key: string): number {
    return this.indices.get(key) ?? -1;
  }

  selectableFrom(index: number, direction: 1 | -1): number {
    for (let at = index; at >= 0 && at < this.length; at += direction) if (this.items[at].kind === 'entry') return at;
    return -1;
  }
}

export function initialState(settings: ViewSettings): LogState {
  return {
    ...{ failure: null, run: null, entries: [], cut: [], search: '', selected: null, settings },
    list: new LogList([]),
  };
}

/** Lists the entries that match level and search: all words of the search occur in text, kind or step. */
export function listOf({ entries, search, settings: { level, order } }: Omit<LogState, 'list'>): LogList {
  const most = logLevels.indexOf(level);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = ({ level: each, text, kind, step, markedAt }: LogEntry): boolean => {
    if (logLevels.indexOf(each) > most) return false;
    const all = `${kind} step ${markedAt ?? step ?? ''} ${text}`.toLowerCase();
    return words.every(word => all.includes(word));
  };
  const items: (LogItem & { kind: 'entry' })[] = [];
  for (let i = entries.length - 1; i >= 0; i--)
    if (matches(entries[i])) items.push({ kind: 'entry', key: String(i), entry: entries[i] });
  if (order === 'severity') {
    const rank = ({ entry }: (typeof items)[number]): number => logLevels.indexOf(entry.level);
    return new LogList(items.toSorted((a, b) => rank(a) - rank(b))); // stable: newest first within a level
  }
  const listed: LogItem[] = [];
  items.forEach((item, i) => {
    const { step } = item.entry;
    // Two headings of the same step are possible after a resume, so the key of the next entry is part of the key.
    if (i === 0 || step !== items[i - 1].entry.step) listed.push({ kind: 'step', key: `step ${item.key}`, step });
    listed.push(item);
  });
  return new LogList(listed);
}

/** Returns the selected entry; null without one. */
export const selectedEntry = ({ entries, selected }: LogState): LogEntry | null =>
  selected === null ? null : (entries[Number(selected)] ?? null);
