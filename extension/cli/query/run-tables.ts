// Fills the tables of `ragen query` (table-columns.ts) from run folders. A table is filled only if the SQL contains its
// name. Files are read line by line by this program, never by DuckDB, so links out of a run folder are not followed and
// an incomplete last line is left out. A damaged line ends the reading of its file with a note.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { DuckDBAppender } from '@duckdb/node-api';
import { UserError } from '../../common/user-error';
import { episodeSchema, type EpisodeTurn } from '../../run-data/episode';
import { eventSchema } from '../../run-data/run-events';
import { episodesFile, runFiles } from '../../run-data/run-file-names';
import { metricsLineSchema } from '../../run-data/step-lines';
import { readValues } from '../../trainer/store/line-log';
import type { RunFolder } from '../../trainer/store/run-folder';
import { rowOf } from '../runs/runs';
import { z } from 'zod';
import type { SqlEngine } from './sql-engine';
import { queryTables, type ColumnType, type TableName } from './table-columns';

type Cell = string | number | boolean | null | undefined | readonly string[];

/** An episode without its messages; of its tokens, only the number is needed. */
const queriedEpisode = episodeSchema
  .omit({ messages: true, what_if: true, tokens: true })
  .extend({ tokens: z.object({ ids: z.array(z.unknown()) }) });

/** Episodes between two checks of the time limit. */
const checkedRows = 256;

/**
 * Creates the tables and fills those that the SQL names; `query(…)` and `query_table(…)` can name any table. Returns a
 * note for each file that could not be read to its end.
 */
export async function fillTables(engine: SqlEngine, folders: readonly RunFolder[], sql: string): Promise<string[]> {
  for (const [name, columns] of Object.entries(queryTables)) {
    const list = Object.entries(columns).map(([column, type]) => `"${column}" ${type}`);
    await engine.prepare(`CREATE TABLE ${name} (${list.join(', ')})`);
  }
  const isNamed = (name: TableName): boolean => new RegExp(String.raw`\b${name}\b|\bquery(_table)?\b`, 'i').test(sql);
  const notes: string[] = [];
  const rows: Record<TableName, (folder: RunFolder) => Iterable<Iterable<Cell[]>>> = {
    ...{ runs: runRows, metrics: metricRows, events: eventRows },
    ...{ episodes: episodeRows, turns: turnRows, calls: callRows, judgements: judgementRows },
  };
  for (const [name, rowsOf] of Object.entries(rows) as [TableName, (typeof rows)[TableName]][])
    if (isNamed(name)) await fill(engine, name, folders, notes, rowsOf);
  return notes;
}

async function fill(
  engine: SqlEngine,
  table: TableName,
  folders: readonly RunFolder[],
  notes: string[],
  rowsOf: (folder: RunFolder) => Iterable<Iterable<Cell[]>>,
): Promise<void> {
  const types = Object.values(queryTables[table]) as ColumnType[];
  await engine.guarded(async () => {
    const appender = await engine.connection.createAppender(table);
    let count = 0;
    for (const folder of folders)
      for (const rows of rowsOf(folder)) {
        try {
          for (const row of rows) {
            types.forEach((type, i) => append(engine, appender, type, row[i]));
            appender.endRow();
            if (++count % checkedRows === 0) engine.check();
          }
        } catch (error) {
          if (!(error instanceof UserError)) throw error;
          engine.check(); // the time limit is no property of the file
          notes.push(error.message);
        }
        appender.flushSync();
      }
    appender.closeSync();
  });
}

function append({ duckdb }: SqlEngine, appender: DuckDBAppender, type: ColumnType, value: Cell): void {
  if (value === null || value === undefined || (typeof value === 'number' && !fits(type, value)))
    return appender.appendNull();
  switch (type) {
    case 'VARCHAR[]':
      return appender.appendList(value as readonly string[], duckdb.LIST(duckdb.VARCHAR));
    case 'BOOLEAN':
      return appender.appendBoolean(value === true);
    case 'INTEGER':
      return appender.appendInteger(value as number);
    case 'BIGINT':
      return appender.appendBigInt(BigInt(value as number));
    case 'DOUBLE':
      return appender.appendDouble(value as number);
    case 'TIMESTAMP': {
      const ms = Date.parse(value as string);
      return Number.isNaN(ms)
        ? appender.appendNull()
        : appender.appendTimestamp(new duckdb.DuckDBTimestampValue(BigInt(ms) * 1000n));
    }
    case 'VARCHAR':
    case 'JSON':
      return appender.appendVarchar(value as string);
  }
}

/** Whether a number of a run folder fits into a column; other numbers become NULL. */
function fits(type: ColumnType, value: number): boolean {
  if (type === 'INTEGER') return Number.isInteger(value) && Math.abs(value) < 2 ** 31;
  return type !== 'BIGINT' || Number.isSafeInteger(value);
}

function* runRows(folder: RunFolder): Generator<Cell[][]> {
  const { manifest } = folder;
  const { run, name, state, live, step, total_steps, success, tags, archived, error } = rowOf(folder);
  const { config_name, created, sweep, config } = manifest;
  const about = [run, name, config_name, state, live, step, total_steps, success, created, tags, archived];
  yield [[...about, sweep?.id, error, folder.path, JSON.stringify(config)]];
}

function* metricRows(folder: RunFolder): Generator<Iterable<Cell[]>> {
  yield flatMapped(
    readValues(folder.file(runFiles.metrics), line => metricsLineSchema.parse(line)),
    ({ value }) => {
      const { step, time, ...metrics } = value;
      return Object.entries(metrics)
        .filter(([, number]) => typeof number === 'number')
        .map(([key, number]) => [folder.id, step, time, key, number]);
    },
  );
}

function* eventRows(folder: RunFolder): Generator<Iterable<Cell[]>> {
  yield flatMapped(
    readValues(folder.file(runFiles.events), line => eventSchema.parse(line)),
    ({ value }) => {
      const { time, step, kind, message, data } = value;
      return [[folder.id, time, step, kind, message, data && JSON.stringify(data)]];
    },
  );
}

type QueriedEpisode = z.infer<typeof queriedEpisode>;

const episodeRows = (folder: RunFolder) =>
  episodeFiles(folder, episode => {
    const { id, step, mode, tag, environment, group_id, member, seed, success, score, reward, penalty } = episode;
    const { advantage, kept, terminated, truncated, turns, tokens, final_state, error, metrics } = episode;
    const origin = [folder.id, id, step, mode, tag, environment.name, environment.version, group_id, member, seed];
    const outcome = [success, score, reward, penalty, advantage, kept, terminated, truncated];
    const ending = [turns.length, tokens.ids.length, final_state, error, JSON.stringify(metrics)];
    return [[...origin, ...outcome, ...ending, ...componentCells(episode)]];
  });

const componentCells = ({ component_reward, components }: QueriedEpisode | EpisodeTurn): Cell[] => [
  component_reward,
  components && JSON.stringify(components),
];

const turnRows = (folder: RunFolder) =>
  episodeFiles(folder, ({ id, step, mode, turns }) =>
    turns.map(each => {
      const { turn, state, raw, thought, answer, executed, reward, penalty, finish, span, info } = each;
      const texts = [state, raw, thought, answer, executed];
      return [
        folder.id,
        id,
        step,
        mode,
        turn,
        ...texts,
        reward,
        penalty,
        finish,
        span[1] - span[0],
        JSON.stringify(info),
        ...componentCells(each),
      ];
    }),
  );

const callRows = (folder: RunFolder) =>
  episodeFiles(folder, ({ id, step, mode, turns }) =>
    turns.flatMap(({ turn, calls = [] }) =>
      calls.map(({ name, arguments: args, result, error, ms }, i) => [
        ...[folder.id, id, step, mode, turn, i + 1],
        ...[name, JSON.stringify(args), result, error, ms],
      ]),
    ),
  );

const judgementRows = (folder: RunFolder) =>
  episodeFiles(folder, ({ id, step, mode, judgements = {} }) =>
    Object.entries(judgements).flatMap(([component, list]) =>
      list.map(({ model, score, text, cached, tokens, cost }) => [
        ...[folder.id, id, step, mode, component],
        ...[model, score, text, cached, tokens, cost],
      ]),
    ),
  );

/** Yields the rows of each episode file, in the order of the steps; what-if episodes are not part of a run's results. */
function* episodeFiles(folder: RunFolder, rows: (episode: QueriedEpisode) => Cell[][]): Generator<Iterable<Cell[]>> {
  const names = readdirSync(join(folder.path, runFiles.episodes), { withFileTypes: true }).flatMap(({ name }) => {
    const [, kind, step] = /^(step|val)-(\d+)\.jsonl$/.exec(name) ?? [];
    return kind === undefined
      ? []
      : [{ mode: kind === 'val' ? ('val' as const) : ('train' as const), step: Number(step) }];
  });
  names.sort((a, b) => a.step - b.step || a.mode.localeCompare(b.mode));
  for (const { mode, step } of names)
    yield flatMapped(
      readValues(folder.file(episodesFile(mode, step)), line => queriedEpisode.parse(line)),
      ({ value }) => rows(value),
    );
}

function* flatMapped<T, U>(values: Iterable<T>, of: (value: T) => readonly U[]): Generator<U> {
  for (const value of values) yield* of(value);
}
