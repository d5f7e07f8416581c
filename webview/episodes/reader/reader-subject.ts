// The subject of the reader: an episode and the episodes displayed with it. Group members and occurrences of the prompt
// are looked up once, when the episode is selected. Pure functions.
import type { EpisodeRow, EpisodeTable } from '../../../extension/run-data/episode-table';
import { groupRows, promptRows } from '../list/listing';
import { counterpart, occurrences, type Occurrence } from './over-training';
import type { EpisodeData, EpisodesSettings, Reading } from '../episodes-settings';

export interface Subject {
  readonly row: EpisodeRow;
  readonly reading: Reading;
  /** All episodes of the prompt group, including `row`. */
  readonly members: readonly EpisodeRow[];
  /** Occurrences of the prompt; null if `reading` is not `training`. */
  readonly history: PromptHistory | null;
  /** The episodes displayed beside `row`. */
  readonly others: readonly EpisodeRow[];
}

/** All occurrences of a prompt, with one occurrence for each step and mode that has episodes of the prompt. */
export interface PromptHistory {
  /** Table that contains the rows of the occurrences. */
  readonly table: EpisodeTable;
  readonly all: readonly Occurrence[];
  /** Index in `all` of the occurrence that contains the episode. */
  readonly at: number;
  readonly against: EpisodesSettings['against'];
  /**
   * Whether the episode is from training and the run has validation episodes. In this case, if the prompt occurs only
   * once, the reader suggests validation episodes, because every validation uses the same prompts.
   */
  readonly hasValidation: boolean;
}

/** Returns the subject of the reader when `row` is the open episode. The subject depends on the setting `reading`. */
export function subjectOf(data: EpisodeData, settings: EpisodesSettings, row: EpisodeRow): Subject {
  const { reading } = settings;
  const members = membersOf(data.table, row);
  const history = reading === 'training' ? historyOf(data, settings, row) : null;
  const others = reading === 'group' || reading === 'film' ? members : history ? compared(history, row) : [];
  return { row, reading, members, history, others };
}

/** Returns the episodes of a prompt group. If `member` is no longer in the table, returns only `member`. */
export function membersOf(table: EpisodeTable, member: EpisodeRow): EpisodeRow[] {
  const at = table.find(member.id);
  return at < 0 ? [member] : groupRows(table, at).map(row => table.row(row));
}

/** Returns the occurrences of an episode's prompt. */
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

/** Returns the episode of `occurrence` that the reader compares with the given episode (`counterpart`). */
export const episodeAt = (table: EpisodeTable, occurrence: Occurrence, { id }: EpisodeRow): EpisodeRow =>
  table.row(counterpart(table, occurrence, table.find(id)));

/**
 * Returns a list with the episode of an earlier occurrence with which `row` is compared. The list is empty if `row`
 * belongs to the first occurrence.
 */
function compared({ table, all, at, against }: PromptHistory, row: EpisodeRow): EpisodeRow[] {
  return at <= 0 ? [] : [episodeAt(table, all[against === 'first' ? 0 : at - 1], row)];
}
