// The database of `ragen query`: it answers one SELECT over its tables; hostile SQL reaches no file, no network, no
// setting and no second statement; limits end a query with an error that names the remedy.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SqlEngine, type SqlLimits } from '../../../../extension/cli/query/sql-engine';

const limits: SqlLimits = { seconds: 30, megabytes: 256, rows: 10 };
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-query-'));
  writeFileSync(join(folder, 'secret.csv'), 'a\nsecret\n');
});
afterAll(() => rmSync(folder, { recursive: true }));

async function asked(sql: string, changed: Partial<SqlLimits> = {}) {
  const engine = await SqlEngine.start({ ...limits, ...changed });
  try {
    await engine.prepare('CREATE TABLE runs (run VARCHAR, success DOUBLE)', `INSERT INTO runs VALUES ('a', 0.5)`);
    return await engine.query(sql);
  } finally {
    engine.close();
  }
}

test('values become JSON', async () => {
  const { columns, rows } = await asked(
    `SELECT 1::BIGINT AS one, 170141183460469231731687303715884105727::HUGEINT AS large, 'nan'::DOUBLE AS n, [1, NULL] AS list,
     {'a': TIMESTAMP '2026-01-02 03:04:05'} AS struct, 'ab'::BLOB AS bytes, 1.25::DECIMAL(4, 2) AS d, NULL AS nothing`,
  );
  expect(rows).toEqual([
    [
      1,
      '170141183460469231731687303715884105727',
      'NaN',
      [1, null],
      { a: '2026-01-02T03:04:05.000Z' },
      '6162',
      1.25,
      null,
    ],
  ]);
  expect(columns.map(({ name }) => name)).toEqual(['one', 'large', 'n', 'list', 'struct', 'bytes', 'd', 'nothing']);
  expect(columns[0].type).toBe('BIGINT');
});

test('rows beyond the limit are cut', async () => {
  expect(await asked('SELECT * FROM range(10)')).toMatchObject({ truncated: false });
  const { rows, truncated } = await asked('FROM range(1000000)');
  expect([rows.length, truncated]).toEqual([10, true]);
});

describe('hostile SQL is refused', () => {
  const files = /no files and no network|does not exist/;
  const readers = [
    'read_text',
    'read_blob',
    'read_csv',
    'read_json',
    'read_parquet',
    'sniff_csv',
    'glob',
    'parquet_scan',
  ];
  test.each([
    ...readers.map(reader => `SELECT * FROM ${reader}('FOLDER/secret.csv')`),
    `SELECT * FROM 'FOLDER/secret.csv'`,
    `SELECT * FROM query('SELECT * FROM read_text(''FOLDER/secret.csv'')')`,
    `SELECT * FROM read_csv('http://127.0.0.1:9/x')`,
    `SELECT getenv('HOME')`,
  ])('%s', async sql => {
    await expect(asked(sql.replaceAll('FOLDER', folder))).rejects.toThrow(files);
  });

  const refused = /is no query|no files and no network|configuration has been locked|only be read/;
  test.each([
    `COPY runs TO 'FOLDER/out.csv'`,
    `COPY (SELECT 1) TO 'FOLDER/out.parquet'`,
    `EXPORT DATABASE 'FOLDER/out'`,
    `ATTACH 'FOLDER/out.db'`,
    'INSTALL httpfs',
    'LOAD httpfs',
    'SET enable_external_access=true',
    `SET memory_limit='100GB'`,
    `PRAGMA memory_limit='100GB'`,
    'RESET lock_configuration',
    'DROP TABLE runs',
    'DELETE FROM runs',
    `UPDATE runs SET success = 1`,
    'CREATE TABLE other (a INT)',
    `CREATE MACRO m(a) AS a`,
    'EXPLAIN ANALYZE DELETE FROM runs',
    'PREPARE p AS SELECT 1',
    'CHECKPOINT',
  ])('%s', async sql => {
    await expect(asked(sql.replaceAll('FOLDER', folder))).rejects.toThrow(refused);
    expect(readdirSync(folder)).toEqual(['secret.csv']);
  });

  test('a second statement', async () => {
    await expect(asked('SELECT 1; DROP TABLE runs')).rejects.toThrow(/has 2 statements: give one SELECT/);
  });

  test.each(['', '   ', '-- nothing', ';'])('no statement: %j', async sql => {
    await expect(asked(sql)).rejects.toThrow(/^query: the SQL (is empty|has 0 statements)/);
  });
});

test('errors are one sentence with the place', async () => {
  await expect(asked('selec 1')).rejects.toThrow(
    'query: Parser Error: syntax error at or near "selec" · LINE 1: selec 1',
  );
  await expect(asked('SELECT sucess FROM runs')).rejects.toThrow(/"sucess" not found.*Candidate bindings: .*"success"/);
  await expect(asked('SELECT * FROM runs WHERE run = ?')).rejects.toThrow(/has parameters/);
});

test('time and memory are limited', async () => {
  await expect(asked('SELECT count(*) FROM range(100000000000) a, range(100000) b', { seconds: 1 })).rejects.toThrow(
    /not finished after 1 s: .*--timeout/,
  );
  await expect(asked('SELECT list(range) FROM range(1000000000)', { megabytes: 64 })).rejects.toThrow(
    /more than 64 MiB of memory are needed: .*--memory/,
  );
});
