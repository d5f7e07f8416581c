// An in-memory DuckDB for one query of unknown origin. From its creation on, the database can neither read nor write
// files, open connections or load extensions, and its settings are locked before the query is executed. One statement
// that only reads is accepted. DuckDB is an optional package, loaded when the first query is made; no other command needs
// it. Its values become JSON.
import type * as DuckDBModule from '@duckdb/node-api';
import type { DuckDBConnection, DuckDBInstance, JS } from '@duckdb/node-api';
import { UserError } from '../../common/user-error';
import type { QueryColumn, QueryValue } from '../../protocol/query-result';

type DuckDB = typeof DuckDBModule;

export interface SqlLimits {
  /** Most seconds of wall time from the engine's start on. */
  seconds: number;
  /** Most memory of the database, in MiB. */
  megabytes: number;
  /** Most rows of the result. */
  rows: number;
}

export class SqlEngine {
  private readonly deadline: number;
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    readonly duckdb: DuckDB,
    private readonly instance: DuckDBInstance,
    readonly connection: DuckDBConnection,
    private readonly limits: SqlLimits,
  ) {
    this.deadline = performance.now() + limits.seconds * 1000;
  }

  /** Starts an empty database. @throws UserError if DuckDB cannot be loaded on this machine */
  static async start(limits: SqlLimits): Promise<SqlEngine> {
    const duckdb = await loadDuckDB('query');
    const instance = await duckdb.DuckDBInstance.create(':memory:', {
      enable_external_access: 'false',
      memory_limit: `${limits.megabytes}MiB`,
    });
    return new SqlEngine(duckdb, instance, await instance.connect(), limits);
  }

  /** Throws a UserError if the time limit is reached. Called while tables are filled. */
  check(): void {
    if (performance.now() > this.deadline) throw this.tooLate();
  }

  /** Executes statements of this program. @throws UserError with DuckDB's reason */
  async prepare(...statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.guarded(() => this.connection.run(statement));
  }

  /** Runs a function that uses the connection, and turns DuckDB's errors into UserErrors. */
  async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UserError) throw error;
      throw this.explained((error as Error).message);
    }
  }

  /**
   * Executes one SELECT or EXPLAIN and returns at most `limits.rows` rows. After this call, only queries are possible.
   * @throws UserError if the SQL is invalid, is no query, or exceeds a limit
   */
  async query(sql: string): Promise<{ columns: QueryColumn[]; rows: QueryValue[][]; truncated: boolean }> {
    await this.prepare(
      'SET autoinstall_known_extensions=false',
      'SET autoload_known_extensions=false',
      'SET allow_community_extensions=false',
      'SET lock_configuration=true',
    );
    this.check();
    this.timer = setTimeout(() => this.connection.interrupt(), this.deadline - performance.now());
    return this.guarded(() => this.rowsOf(sql));
  }

  close(): void {
    clearTimeout(this.timer);
    this.connection.closeSync();
    this.instance.closeSync();
  }

  private async rowsOf(sql: string) {
    const { StatementType } = this.duckdb;
    const statements = await this.connection.extractStatements(sql);
    if (statements.count !== 1)
      throw new UserError(
        `query: the SQL has ${statements.count} statements: give one SELECT, without others after it`,
      );
    const statement = await statements.prepare(0);
    const isQuery = [StatementType.SELECT, StatementType.EXPLAIN].includes(statement.statementType);
    if (!isQuery || /^[\s(]*explain\s+analy[sz]e/i.test(sql))
      throw new UserError(
        `query: ${StatementType[statement.statementType]} is no query: give one SELECT; the runs can only be read`,
      );
    if (statement.parameterCount > 0)
      throw new UserError('query: the SQL has parameters ($1 or ?): write their values into the SQL');
    const result = await statement.stream();
    const columns = result.deduplicatedColumnNames().map((name, i) => ({ name, type: String(result.columnType(i)) }));
    const rows: QueryValue[][] = [];
    for await (const chunk of result.yieldRowsJs()) {
      for (const row of chunk) rows.push(row.map(jsonValue));
      if (rows.length > this.limits.rows) break;
      this.check();
    }
    return { columns, rows: rows.slice(0, this.limits.rows), truncated: rows.length > this.limits.rows };
  }

  private tooLate(): UserError {
    return new UserError(
      `query: not finished after ${this.limits.seconds} s: select fewer runs with --run, simplify the SQL, or raise --timeout`,
    );
  }

  /** Returns DuckDB's error as one sentence with a remedy. */
  private explained(message: string): UserError {
    if (/interrupt/i.test(message)) return this.tooLate();
    if (/^Out of Memory Error/.test(message))
      return new UserError(
        `query: more than ${this.limits.megabytes} MiB of memory are needed: select fewer runs with --run, aggregate earlier, or raise --memory`,
      );
    if (message === 'Error in native callback')
      return new UserError('query: the SQL is empty: give a SELECT such as "SELECT run, success FROM runs"');
    const lines = message
      .replace(/^Failed to extract statements: /, '')
      .split('\n')
      .map(line => line.trim())
      .filter(line => line !== '' && line !== '^');
    const remedy = /disabled (by|through) configuration/.test(message)
      ? ': a query reads only the tables of the runs, no files and no network'
      : '';
    return new UserError(`query: ${lines.join(' · ')}${remedy}`);
  }
}

/** Loads DuckDB. @throws UserError that begins with `command` if it cannot be loaded on this machine */
export async function loadDuckDB(command: string): Promise<DuckDB> {
  try {
    return await import('@duckdb/node-api');
  } catch (error) {
    const [reason] = (error as Error).message.split('\n', 1);
    throw new UserError(
      `${command}: DuckDB cannot be loaded on ${process.platform}-${process.arch} (${reason}): install the package @duckdb/node-api, or read the run folders with Python (docs/NOTEBOOKS.md)`,
    );
  }
}

/** Converts a value of DuckDB to JSON (QueryValue). */
function jsonValue(value: JS): QueryValue {
  if (value === null || value === undefined || typeof value === 'boolean' || typeof value === 'string')
    return value ?? null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (typeof value === 'bigint')
    return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex');
  if (Array.isArray(value)) return value.map(jsonValue);
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, jsonValue(part)]));
}
