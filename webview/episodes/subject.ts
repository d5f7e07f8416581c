// What the reader is asked to show: an episode, and the ones that are read with it. A group's members and a prompt's
// occurrences are looked up once, when the episode is chosen. Pure.
import type { EpisodeRow, EpisodeTable } from '../../extension/run-data/episode-table';
import { groupRows, promptRows } from './listing';
import { counterpart, occurrences, type Occurrence } from './over-training';
import type { EpisodeData, EpisodesSettings, Reading } from './settings';

export interface Subject {
  readonly row: EpisodeRow;
  readonly reading: Reading;
  /** All episodes of the prompt group, including this one. */
  readonly members: readonly EpisodeRow[];
  /** When the prompt was played; null in another reading. */
  readonly history: PromptHistory | null;
  /** The episodes shown beside this one. */
  readonly others: readonly EpisodeRow[];
}

/** A prompt over training. */
export interface PromptHistory {
  /** The table that the occurrences' rows belong to. */
  readonly table: EpisodeTable;
  readonly all: readonly Occurrence[];
  /** Index of the episode's own occurrence. */
  readonly at: number;
  readonly against: EpisodesSettings['against'];
  /** Whether validation episodes, whose prompts recur, could be listed instead. */
  readonly hasValidation: boolean;
}

/** The subject of an episode in the current reading. */
export function subjectOf(data: EpisodeData, settings: EpisodesSettings, row: EpisodeRow): Subject {
  const { reading } = settings;
  const members = membersOf(data.table, row);
  const history = reading === 'training' ? historyOf(data, settings, row) : null;
  const others = reading === 'group' ? members : history ? compared(history, row) : [];
  return { row, reading, members, history, others };
}

/** The episodes of a prompt group; only the given one if it is no longer in the table. */
export function membersOf(table: EpisodeTable, member: EpisodeRow): EpisodeRow[] {
  const at = table.find(member.id);
  return at < 0 ? [member] : groupRows(table, at).map(row => table.row(row));
}

/** When an episode's prompt was played. */
export function historyOf(
  { table, modes }: EpisodeData,
  { against }: EpisodesSettings,
  { id, step, mode }: EpisodeRow,
): PromptHistory {
  const row = table.find(id);
  const all = row < 0 ? [] : occurrences(table, promptRows(table, row));
  return {
    table,
    all,
    at: all.findIndex(each => each.step === step && each.mode === mode),
    against,
    hasValidation: modes.includes('val') && mode === 'train',
  };
}

/** The episode that stands for the one with this id at another occurrence. */
export const episodeAt = (table: EpisodeTable, occurrence: Occurrence, { id }: EpisodeRow): EpisodeRow =>
  table.row(counterpart(table, occurrence, table.find(id)));

/** The episode with which one is compared over training; none for the first occurrence. */
function compared({ table, all, at, against }: PromptHistory, row: EpisodeRow): EpisodeRow[] {
  return at <= 0 ? [] : [episodeAt(table, all[against === 'first' ? 0 : at - 1], row)];
}
