// What the roles of a run's episodes have earned, as columns of the episode table: one pair of columns per role name.
// Runs without roles have no such columns. Missing values are NaN.

/** Scores and returns by role in a line of the episode index: one value per episode of the line, null if missing. */
export interface RoleLine {
  names: string[];
  scores: (number | null)[][];
  rewards: (number | null)[][];
}

/** Some rows of role columns, for transfer. */
export interface RoleRows {
  names: string[];
  scores: Float64Array[];
  rewards: Float64Array[];
}

/** What a role of an episode has earned: its score, and the sum of its turn rewards without penalties. */
export interface RoleRow {
  role: string;
  score: number;
  reward: number;
}

/** Adds the values of the episode with index `at` to a line. */
export function addRoles(
  line: RoleLine | undefined,
  at: number,
  roles: Readonly<Record<string, { score: number; reward: number }>>,
): RoleLine {
  const { names, scores, rewards } = line ?? { names: [], scores: [], rewards: [] };
  for (const [role, { score, reward }] of Object.entries(roles)) {
    const number = numberOf(names, role);
    const set = (columns: (number | null)[][], value: number): void => {
      const column = (columns[number] ??= []);
      while (column.length < at) column.push(null);
      column[at] = value;
    };
    set(scores, score);
    set(rewards, reward);
  }
  return { names, scores, rewards };
}

/** Whether a parsed value holds the columns of a line with `rows` episodes. */
export function isRoleLine(value: unknown, rows: number): value is RoleLine {
  if (typeof value !== 'object' || value === null) return false;
  const { names, scores, rewards } = value as RoleLine;
  const isColumns = (columns: unknown): boolean =>
    Array.isArray(columns) &&
    columns.length === names.length &&
    columns.every(
      (column: unknown) =>
        Array.isArray(column) &&
        column.length <= rows &&
        column.every((each: unknown) => each === null || typeof each === 'number'),
    );
  return (
    Array.isArray(names) &&
    names.every(name => typeof name === 'string') &&
    [scores, rewards].every(columns => isColumns(columns))
  );
}

export class RoleColumns {
  readonly names: string[] = [];
  private readonly scores: Float64Array[] = [];
  private readonly rewards: Float64Array[] = [];

  /** Sets the values of rows from `from` on. */
  set(from: number, { names, scores, rewards }: RoleLine | RoleRows): void {
    names.forEach((name, i) => {
      const number = numberOf(this.names, name);
      for (const [columns, values] of [
        [this.scores, scores[i]],
        [this.rewards, rewards[i]],
      ] as const) {
        const column = (columns[number] = grown(columns[number], from + values.length));
        values.forEach((value, at) => (column[from + at] = value ?? Number.NaN));
      }
    });
  }

  /** Returns a copy of the rows [from, to); undefined if the table has no roles. */
  slice(from: number, to: number): RoleRows | undefined {
    if (this.names.length === 0) return undefined;
    const part = (column: Float64Array): Float64Array => grown(column, to).slice(from, to);
    return { names: [...this.names], scores: this.scores.map(part), rewards: this.rewards.map(part) };
  }

  /** Returns the roles of a row in the order of their declaration; empty if the episode has none. */
  row(row: number): RoleRow[] {
    return this.names.flatMap((role, i) => {
      const [score, reward] = [this.scores[i][row] ?? Number.NaN, this.rewards[i][row] ?? Number.NaN];
      return Number.isNaN(score) ? [] : [{ role, score, reward }];
    });
  }
}

function numberOf(names: string[], name: string): number {
  const at = names.indexOf(name);
  return at >= 0 ? at : names.push(name) - 1;
}

/** Returns the column, with room for `rows` values; added values are NaN. */
function grown(column: Float64Array | undefined, rows: number): Float64Array {
  if (column && column.length >= rows) return column;
  const wider = new Float64Array(Math.ceil(rows * 1.5)).fill(Number.NaN);
  if (column) wider.set(column);
  return wider;
}
