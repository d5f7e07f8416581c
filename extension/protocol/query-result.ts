// The result of a SQL query over the runs of a workspace: the document of `ragen query --json`, which the Query page also
// shows.

export interface QueryColumn {
  name: string;
  /** Type in DuckDB's notation, such as `BIGINT` or `VARCHAR[]`. */
  type: string;
}

/**
 * A value as JSON. Integers beyond ±2⁵³, times and blobs are texts; a double that is not finite is the text `NaN`,
 * `Infinity` or `-Infinity`.
 */
export type QueryValue = null | boolean | number | string | QueryValue[] | { [name: string]: QueryValue };

export interface QueryResult {
  columns: QueryColumn[];
  rows: QueryValue[][];
  /** Whether the query has more rows than the limit. */
  truncated: boolean;
  /** Wall time in seconds, including the reading of the run folders. */
  seconds: number;
  /** One sentence for each file that could not be read to its end. */
  notes: string[];
}
