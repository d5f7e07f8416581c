// The content of the list in order. The list is either grouped by step and prompt group, with headings, or flat and
// sorted by a column. Because a list can have 100,000 episodes, only one number is stored per item; the items
// themselves are created when they are rendered. Pure functions.
import type { EpisodeTable, TableColumn } from '../../../extension/run-data/episode-table';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';

export type ListItem =
  | { kind: 'step'; key: string; step: number; mode: 'train' | 'val'; count: number }
  | {
      kind: 'group';
      key: string;
      tag: string;
      group_id: number;
      /** Number of listed episodes of the group; `size` is the number of all its episodes. */
      count: number;
      size: number;
      /** Number of successful episodes of the group, including episodes that are not listed. */
      /** Null if the success of no episode is known. */
      solved: number | null;
      std: number;
      kept: boolean | null;
    }
  /**
   * A row shows its position in the run, without the parts that the headings above the row show. `unit` is the first
   * part that the row shows: `step` in a flat list, `member` under a group heading, and `group` if the episode is the
   * only member of its group. `tagged` is true if the run has several tags, so that the tag distinguishes the episode.
   */
  | { kind: 'episode'; key: string; row: EpisodeRow; unit: 'member' | 'group' | 'step'; tagged: boolean };

/** Columns by which the list can be sorted, with their names. */
export const sortColumns = {
  reward: 'return',
  score: 'score',
  advantage: 'advantage',
  success: 'success',
  turns: 'turns',
  tokens: 'tokens',
  invalid: 'invalid actions',
  kept: 'kept by all filters',
  step: 'step',
  group: 'group',
  tag: 'tag',
} as const satisfies Partial<Record<TableColumn, string>>;
export type SortColumn = keyof typeof sortColumns;
export interface Sort {
  by: SortColumn;
  /** Whether the order is descending. */
  down: boolean;
}

/**
 * Returns all rows in natural order: the newest step first. Within a step, training comes before validation, and rows
 * are sorted by group and member.
 */
export function naturalOrder(table: EpisodeTable): Uint32Array {
  const [step, mode, group, member] = (['step', 'mode', 'group', 'member'] as const).map(name => table.column(name));
  return Uint32Array.from({ length: table.rows }, (_, row) => row).sort(
    (a, b) => step[b] - step[a] || mode[a] - mode[b] || group[a] - group[b] || member[a] - member[b] || a - b,
  );
}

/**
 * Returns the rows sorted by a column; rows without a value come last. Episodes with roles are sorted by the score or
 * the return of their first role. Stable sort.
 */
export function sortRows(rows: Uint32Array, table: EpisodeTable, { by, down }: Sort): Uint32Array {
  const positions = by === 'tag' ? tagPositions(table) : null;
  const column = table.column(by);
  const missing = (row: number) => Number.isNaN(column[row]) || (by === 'kept' && column[row] < 0);
  const own = by === 'score' || by === 'reward' ? by : null;
  const value = (row: number) =>
    positions ? positions[column[row]] : ((own && table.rolesOf(row)[0]?.[own]) ?? column[row]);
  const keys = Float64Array.from(rows, row => (missing(row) ? Infinity : down ? -value(row) : value(row)));
  const order = Uint32Array.from(rows.keys()).sort((a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : a - b));
  return order.map(at => rows[at]);
}

/** Returns the alphabetical rank of each tag. */
function tagPositions({ tags }: EpisodeTable): number[] {
  const sorted = [...tags].sort();
  return tags.map(tag => sorted.indexOf(tag));
}

interface Heading {
  kind: 'step' | 'group';
  /** The rows below the heading, as a range [from, to) of `rows`. */
  from: number;
  to: number;
}

export class Listing {
  /** One number per item. A number ≥ 0 is the index of a row; −1, −2, … stand for the headings 0, 1, … */
  private readonly entries: Int32Array;
  private readonly headings: Heading[] = [];

  /**
   * Lists `rows` in the given order, with headings if `grouped` is set. Step headings are added if there are several
   * steps. A group heading is added for each group that has several members. `all` contains all rows of the table in
   * natural order, because group headings describe all members of the group, including members outside `rows`.
   */
  constructor(
    private readonly table: EpisodeTable,
    readonly rows: Uint32Array,
    private readonly grouped: boolean,
    private readonly all: Uint32Array,
  ) {
    this.entries = grouped ? this.withHeadings() : Int32Array.from(rows);
  }

  get length(): number {
    return this.entries.length;
  }

  at(index: number): ListItem {
    const entry = this.entries[index];
    if (entry < 0) return this.heading(this.headings[-1 - entry]);
    const row = this.table.row(entry);
    const unit = !this.grouped ? 'step' : this.groupOf(entry).length === 1 ? 'group' : 'member';
    return { kind: 'episode', key: row.id, row, unit, tagged: this.table.tags.length > 1 };
  }

  /** Returns the index of an episode in the list; -1 if it is not listed. */
  find(id: string): number {
    const row = this.table.find(id);
    return row < 0 ? -1 : this.entries.indexOf(row);
  }

  /** Returns the index of the first episode at or beyond `index` in the given direction; -1 if there is none. */
  selectableFrom(index: number, direction: 1 | -1): number {
    for (let at = index; at >= 0 && at < this.length; at += direction) if (this.entries[at] >= 0) return at;
    return -1;
  }

  /** Returns the table row of the first episode at or after an index of the list; -1 if there is none. */
  rowAt(index: number): number {
    const at = this.selectableFrom(index, 1);
    return at < 0 ? -1 : this.entries[at];
  }

  private withHeadings(): Int32Array {
    const { table, rows } = this;
    const [step, mode, group] = (['step', 'mode', 'group'] as const).map(name => table.column(name));
    const sameStep = (a: number, b: number) => step[a] === step[b] && mode[a] === mode[b];
    const several = rows.length > 0 && !sameStep(rows[0], rows[rows.length - 1]);
    const entries: number[] = [];
    let [lastStep, lastGroup]: (Heading | null)[] = [null, null];
    rows.forEach((row, i) => {
      const newStep = i === 0 || !sameStep(row, rows[i - 1]);
      if (newStep && several) entries.push(this.begin((lastStep = { kind: 'step', from: i, to: i })));
      if (newStep || group[row] !== group[rows[i - 1]]) {
        lastGroup = this.groupOf(row).length > 1 ? { kind: 'group', from: i, to: i } : null;
        if (lastGroup) entries.push(this.begin(lastGroup));
      }
      entries.push(row);
      for (const heading of [lastStep, lastGroup]) if (heading) heading.to = i + 1;
    });
    return Int32Array.from(entries);
  }

  private begin(heading: Heading): number {
    return -this.headings.push(heading);
  }

  private heading({ kind, from, to }: Heading): ListItem {
    const { table, rows } = this;
    const { step, mode, group_id, tag, kept } = table.row(rows[from]);
    const count = to - from;
    if (kind === 'step') return { kind, key: `step ${mode} ${step}`, step, mode, count };
    const members = this.groupOf(rows[from]);
    const [success, judged] = [table.column('success'), table.column('judged')];
    const isJudged = members.some(row => judged[row] === 1);
    const solved = isJudged ? members.reduce((total, row) => total + success[row], 0) : null;
    const std = scoreDeviation(table, members);
    return {
      ...{ kind, key: `group ${mode} ${step} ${group_id}`, tag, group_id },
      ...{ count, size: members.length, solved, std, kept },
    };
  }

  /** Returns all rows of the prompt group that contains `row`, including rows that are not listed. */
  private groupOf(row: number): Uint32Array {
    const { table, all } = this;
    const [step, mode, group] = (['step', 'mode', 'group'] as const).map(name => table.column(name));
    const order = (other: number) => step[row] - step[other] || mode[other] - mode[row] || group[other] - group[row];
    return all.subarray(
      countWhere(all, other => order(other) < 0),
      countWhere(all, other => order(other) <= 0),
    );
  }
}

/**
 * Returns the number of rows that pass the test. The rows that pass must precede all others, because the function uses
 * binary search.
 */
function countWhere(rows: Uint32Array, test: (row: number) => boolean): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(rows[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns the rows of the prompt group that contains `row`, sorted by member. */
export function groupRows(table: EpisodeTable, row: number): number[] {
  const columns = (['step', 'mode', 'group'] as const).map(name => table.column(name));
  const same = rowsWhere(table, other => columns.every(column => column[other] === column[row]));
  const member = table.column('member');
  return same.sort((a, b) => member[a] - member[b]);
}

/**
 * Returns the rows that have the same prompt as `row`, sorted by step. Two rows have the same prompt if their tags are
 * equal and, in addition, either both mode and seed are equal or the first states are equal.
 */
export function promptRows(table: EpisodeTable, row: number): number[] {
  const [tag, mode, step, group, member] = (['tag', 'mode', 'step', 'group', 'member'] as const).map(name =>
    table.column(name),
  );
  const [seed, first] = [table.column('seed'), table.column('first')];
  const same = rowsWhere(
    table,
    other =>
      tag[other] === tag[row] &&
      ((mode[other] === mode[row] && seed[other] === seed[row]) || (first[row] !== 0 && first[other] === first[row])),
  );
  return same.sort((a, b) => step[a] - step[b] || mode[a] - mode[b] || group[a] - group[b] || member[a] - member[b]);
}

function rowsWhere({ rows }: EpisodeTable, test: (row: number) => boolean): number[] {
  const found: number[] = [];
  for (let row = 0; row < rows; row++) if (test(row)) found.push(row);
  return found;
}

/**
 * Returns the standard deviation of the scores of a group. With roles, it is the mean of the roles' deviations, as in
 * the rollout filter.
 */
function scoreDeviation(table: EpisodeTable, members: Uint32Array): number {
  const score = table.column('score');
  const byRole = new Map<string, number[]>();
  for (const row of members)
    for (const own of table.rolesOf(row)) byRole.set(own.role, [...(byRole.get(own.role) ?? []), own.score]);
  if (byRole.size === 0) return deviation(Array.from(members, row => score[row]));
  return [...byRole.values()].reduce((sum, scores) => sum + deviation(scores), 0) / byRole.size;
}

/** Returns the sample standard deviation (N − 1), as in the rollout filter; 0 for a single value. */
function deviation(values: number[]): number {
  if (values.length < 2) return 0;
  const mean = values.reduce((total, value) => total + value, 0) / values.length;
  return Math.sqrt(values.reduce((total, value) => total + (value - mean) ** 2, 0) / (values.length - 1));
}
