// Episodes of a run as typed-array columns. The host sends 100,000 episodes in one message, and the page filters and
// sorts them without a round trip. Rows are identified by number. New rows are appended at the end, and the order of
// rows is arbitrary.
import { episodeId, type EpisodeIndexLine } from './episode-index-line';
import { recordOf } from '../common/records';
import { RoleColumns, type RoleRow, type RoleRows } from './role-columns';

/** A row in the list of the Episodes page. */
export interface EpisodeRow {
  id: string;
  step: number;
  mode: 'train' | 'val';
  group_id: number;
  member: number;
  tag: string;
  /** Null if unknown. */
  success: boolean | null;
  score: number;
  /** Sum of turn rewards, without penalties. */
  reward?: number;
  /** Mean advantage over trained tokens; null if the episode was not used for training. */
  advantage?: number | null;
  turns: number;
  /** Number of sampled tokens; null if the tokens are not stored. */
  tokens: number | null;
  kept: boolean | null;
  /**
   * Number of actions that the environment does not know, plus the number of answers without an action. Absent if these
   * were not counted.
   */
  invalid?: number;
  /** Seed of the environment; absent if the row was not read from the table. */
  seed?: number;
  /** What each role has earned; absent in an environment without roles. */
  roles?: RoleRow[];
}

/**
 * `mode` is 0 for training and 1 for validation. `success` is 0 if `judged` is 0, which means that the success is unknown.
 * `tokens` is −1 if the tokens are not stored. `kept` is −1 if no rollout filter was applied. A missing `advantage`
 * is NaN.
 */
const columnTypes = {
  step: Int32Array,
  mode: Uint8Array,
  group: Int32Array,
  member: Int32Array,
  tag: Uint16Array,
  seed: Float64Array,
  success: Uint8Array,
  judged: Uint8Array,
  score: Float64Array,
  reward: Float64Array,
  advantage: Float32Array,
  turns: Int32Array,
  tokens: Int32Array,
  invalid: Int32Array,
  kept: Int8Array,
  first: Float64Array,
} as const;
export type TableColumn = keyof typeof columnTypes;
const tableColumns = Object.keys(columnTypes) as TableColumn[];
type Columns = { [K in TableColumn]: InstanceType<(typeof columnTypes)[K]> };

/** Some rows of a table, for transfer. `tags` holds all tags of the table. */
export interface EpisodeRows {
  rows: number;
  tags: string[];
  columns: Columns;
  /** The columns of roles; absent if no episode has roles. */
  roles?: RoleRows;
}

export class EpisodeTable {
  rows = 0;
  /** All tags; the column `tag` contains indices into this array. */
  readonly tags: string[] = [];
  private columns = allocate(256);
  private readonly roles = new RoleColumns();

  /** Returns a column. Only the first `rows` values are valid, and only until more rows are added. */
  column<K extends TableColumn>(name: K): Columns[K] {
    return this.columns[name];
  }

  /** Appends the episodes of an index line. */
  addLine({ mode, step, tags, columns, roles }: EpisodeIndexLine): void {
    const count = columns.at.length;
    const from = this.grow(count);
    const numbers = tags.map(tag => this.tagNumber(tag));
    const to = this.columns;
    to.step.fill(step, from, this.rows);
    to.mode.fill(mode === 'val' ? 1 : 0, from, this.rows);
    for (let i = 0; i < count; i++) to.tag[from + i] = numbers[columns.tag[i] ?? 0] ?? 0;
    to.advantage.set(
      columns.advantage.includes(null) ? columns.advantage.map(x => x ?? Number.NaN) : (columns.advantage as number[]),
      from,
    );
    to.kept.set(
      columns.kept.map(x => x ?? -1),
      from,
    );
    to.judged.set(
      columns.success.map(x => Number(x !== null)),
      from,
    );
    to.tokens.set(
      columns.tokens.map(x => x ?? -1),
      from,
    );
    // In these columns, null (missing) is stored as 0.
    for (const name of ['group', 'member', 'seed', 'success', 'score', 'reward', 'turns', 'invalid', 'first'] as const)
      to[name].set(columns[name] as number[], from);
    if (roles) this.roles.set(from, roles);
  }

  /** Appends rows of another table. */
  addRows({ rows, tags, columns, roles }: EpisodeRows): void {
    const from = this.grow(rows);
    for (const tag of tags) this.tagNumber(tag); // tags are only appended, so both tables have the same tag numbers
    for (const name of tableColumns) this.columns[name].set(columns[name], from);
    if (roles) this.roles.set(from, roles);
  }

  /** Returns a copy of the rows from `from` on. */
  slice(from: number): EpisodeRows {
    const columns = recordOf(tableColumns, name => this.columns[name].slice(from, this.rows)) as Columns;
    const roles = this.roles.slice(from, this.rows);
    return { rows: this.rows - from, tags: [...this.tags], columns, ...(roles && { roles }) };
  }

  /** Returns a row as an object. */
  row(row: number): EpisodeRow {
    const { columns } = this;
    const about = {
      step: columns.step[row],
      mode: columns.mode[row] === 1 ? ('val' as const) : ('train' as const),
      group_id: columns.group[row],
      member: columns.member[row],
    };
    const [advantage, kept] = [columns.advantage[row], columns.kept[row]];
    const roles = this.rolesOf(row);
    return {
      id: episodeId(about),
      ...about,
      tag: this.tags[columns.tag[row]] ?? '',
      success: columns.judged[row] === 0 ? null : columns.success[row] === 1,
      score: columns.score[row],
      reward: columns.reward[row],
      advantage: Number.isNaN(advantage) ? null : advantage,
      turns: columns.turns[row],
      tokens: columns.tokens[row] < 0 ? null : columns.tokens[row],
      invalid: columns.invalid[row],
      seed: columns.seed[row],
      kept: kept < 0 ? null : kept === 1,
      ...(roles.length > 0 && { roles }),
    };
  }

  /** Returns what each role of a row has earned, in the order of their declaration; empty without roles. */
  rolesOf(row: number): RoleRow[] {
    return this.roles.row(row);
  }

  /** Returns the row number of an episode id; −1 if the table lacks the episode. */
  find(id: string): number {
    const match = /^(train|val)-(\d+)-g(\d+)-m(\d+)$/.exec(id);
    if (!match) return -1;
    const [mode, step, group, member] = [match[1] === 'val' ? 1 : 0, ...match.slice(2).map(Number)];
    const { columns } = this;
    for (let row = 0; row < this.rows; row++)
      if (
        columns.step[row] === step &&
        columns.group[row] === group &&
        columns.member[row] === member &&
        columns.mode[row] === mode
      )
        return row;
    return -1;
  }

  private tagNumber(tag: string): number {
    const at = this.tags.indexOf(tag);
    return at >= 0 ? at : this.tags.push(tag) - 1;
  }

  /** Reserves `count` more rows and returns the number of the first. */
  private grow(count: number): number {
    const from = this.rows;
    this.rows += count;
    if (this.columns.step.length < this.rows) {
      const wider = allocate(Math.ceil(this.rows * 1.5));
      for (const name of tableColumns) wider[name].set(this.columns[name].subarray(0, from));
      this.columns = wider;
    }
    return from;
  }
}

function allocate(rows: number): Columns {
  return recordOf(tableColumns, name => new columnTypes[name](rows)) as Columns;
}
