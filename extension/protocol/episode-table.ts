// The episodes of a run as columns of typed arrays: what the host sends of 100,000 episodes in one message, and what the page filters and
// sorts without a round trip. A row is a number; rows are only ever appended, in any order.
import { episodeId, type EpisodeIndexLine } from './episode-index';
import type { EpisodeRow } from './pages';

/** `mode` is 0 for training, 1 for validation; `kept` -1 where the filter said nothing; `advantage` NaN where there is none. */
const columnTypes = {
  step: Int32Array,
  mode: Uint8Array,
  group: Int32Array,
  member: Int32Array,
  tag: Uint16Array,
  seed: Float64Array,
  success: Uint8Array,
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
export const tableColumns = Object.keys(columnTypes) as TableColumn[];
type Columns = { [K in TableColumn]: InstanceType<(typeof columnTypes)[K]> };

/** Some rows of a table, as they are sent. `tags` are all of the table's. */
export interface EpisodeRows {
  rows: number;
  tags: string[];
  columns: Columns;
}

export class EpisodeTable {
  rows = 0;
  /** Tags by their numbers. */
  readonly tags: string[] = [];
  private columns = allocate(256);

  /** A column; its first `rows` values count. Valid until rows are added. */
  column<K extends TableColumn>(name: K): Columns[K] {
    return this.columns[name];
  }

  /** Appends what a line of the index tells. */
  addLine({ mode, step, tags, columns }: EpisodeIndexLine): void {
    const count = columns.at.length;
    const from = this.grow(count);
    const numbers = tags.map(tag => this.tagNumber(tag));
    const to = this.columns;
    to.step.fill(step, from, this.rows);
    to.mode.fill(mode === 'val' ? 1 : 0, from, this.rows);
    for (let i = 0; i < count; i++) to.tag[from + i] = numbers[columns.tag[i] ?? 0] ?? 0;
    to.advantage.set(columns.advantage.includes(null) ? columns.advantage.map(x => x ?? Number.NaN) : (columns.advantage as number[]), from); // prettier-ignore
    to.kept.set(columns.kept.map(x => x ?? -1), from); // prettier-ignore
    // What is not there (null) becomes 0.
    for (const name of [
      'group',
      'member',
      'seed',
      'success',
      'score',
      'reward',
      'turns',
      'tokens',
      'invalid',
      'first',
    ] as const)
      to[name].set(columns[name] as number[], from);
  }

  /** Appends rows that another table gave. */
  addRows({ rows, tags, columns }: EpisodeRows): void {
    const from = this.grow(rows);
    for (const tag of tags) this.tagNumber(tag); // the sender's numbers are ours, since tags are only ever appended
    for (const name of tableColumns) this.columns[name].set(columns[name], from);
  }

  /** Rows from `from` on, copied. */
  slice(from: number): EpisodeRows {
    const cut = tableColumns.map(name => [name, this.columns[name].slice(from, this.rows)]);
    return { rows: this.rows - from, tags: [...this.tags], columns: Object.fromEntries(cut) as unknown as Columns };
  }

  /** A row as an object. */
  row(row: number): EpisodeRow {
    const { columns } = this;
    const about = {
      step: columns.step[row],
      mode: columns.mode[row] === 1 ? ('val' as const) : ('train' as const),
      group_id: columns.group[row],
      member: columns.member[row],
    };
    const [advantage, kept] = [columns.advantage[row], columns.kept[row]];
    return {
      id: episodeId(about),
      ...about,
      tag: this.tags[columns.tag[row]] ?? '',
      success: columns.success[row] === 1,
      score: columns.score[row],
      reward: columns.reward[row],
      advantage: Number.isNaN(advantage) ? null : advantage,
      turns: columns.turns[row],
      tokens: columns.tokens[row],
      invalid: columns.invalid[row],
      kept: kept < 0 ? null : kept === 1,
    };
  }

  /** The row of an episode's id; -1 where there is none. */
  find(id: string): number {
    const match = /^(train|val)-(\d+)-g(\d+)-m(\d+)$/.exec(id);
    if (!match) return -1;
    const [mode, step, group, member] = [match[1] === 'val' ? 1 : 0, ...match.slice(2).map(Number)];
    const { columns } = this;
    for (let row = 0; row < this.rows; row++)
      if (columns.step[row] === step && columns.group[row] === group && columns.member[row] === member && columns.mode[row] === mode) return row; // prettier-ignore
    return -1;
  }

  private tagNumber(tag: string): number {
    const at = this.tags.indexOf(tag);
    return at >= 0 ? at : this.tags.push(tag) - 1;
  }

  /** Makes room for `count` further rows and answers the first. */
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
  return Object.fromEntries(tableColumns.map(name => [name, new columnTypes[name](rows)])) as unknown as Columns;
}
