// `ragen query SQL`: one SQL query over the runs of a workspace, with time, memory and row limits. The result is a table,
// CSV or JSON (protocol/query-result.ts). SQL from elsewhere is safe to run: the query reads the tables of run-tables.ts
// and nothing else (sql-engine.ts).
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { csvText } from '../../common/csv';
import { maximum } from '../../common/lists';
import { printable } from '../../common/printable';
import type { QueryResult, QueryValue } from '../../protocol/query-result';
import { RunFolder } from '../../trainer/store/run-folder';
import { collect } from '../options/environment-options';
import { wholeNumber } from '../options/model-options';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer } from '../output/answer';
import { fillTables } from './run-tables';
import { queryTables } from './table-columns';
import { SqlEngine } from './sql-engine';

interface QueryFlags extends CommonFlags {
  run: string[];
  rows: number;
  timeout: number;
  memory: number;
  csv?: boolean;
}

const tableHelp = Object.entries(queryTables)
  .map(([name, columns]) => `  ${name}: ${Object.keys(columns).join(', ')}`)
  .join('\n');

export function addQuery(program: Command): void {
  withCommon(program.command('query').description('run a SQL query over the runs of this folder'))
    .argument('<sql>', 'one SELECT in DuckDB’s dialect; - reads it from standard input')
    .option('--run <id>', 'read only this run (repeatable; default: all runs)', collect, [])
    .option('--rows <n>', 'maximum number of rows', wholeNumber('--rows', 1, 1_000_000), 1000)
    .option('--timeout <seconds>', 'time limit', wholeNumber('--timeout', 1, 86_400), 60)
    .option('--memory <MiB>', 'memory limit of the database', wholeNumber('--memory', 64, 1_048_576), 2048)
    .option('--csv', 'print comma-separated values')
    .addHelpText(
      'after',
      `
Tables:
${tableHelp}

A query reads these tables only: no files, no network. metrics has one row for each step and key; runs.config is the
configuration as JSON, for example config ->> '$.trainer.total_training_steps'. Times are in UTC.
Output with --json: {"columns": [{"name", "type"}], "rows": [[…]], "truncated", "seconds", "notes"}.`,
    )
    .action((sql: string, flags: QueryFlags) =>
      answer(flags, async () => {
        const result = await query(sql === '-' ? readFileSync(0, 'utf8') : sql, flags);
        if (!flags.json) for (const note of notesOf(result, flags)) process.stderr.write(`${printable(note)}\n`);
        const { columns, rows } = result;
        const heads = columns.map(({ name }) => name);
        return { document: result, plainText: flags.csv ? csvText(heads, rows).trimEnd() : table(result) };
      }),
    );
}

async function query(sql: string, flags: QueryFlags): Promise<QueryResult> {
  const started = performance.now();
  const workspace = workspaceOf(flags.workspace);
  const { runs, damaged } =
    flags.run.length > 0
      ? { runs: flags.run.map(id => RunFolder.find(workspace, id)), damaged: [] }
      : RunFolder.survey(workspace);
  const engine = await SqlEngine.start({ seconds: flags.timeout, megabytes: flags.memory, rows: flags.rows });
  try {
    const notes = [...damaged.map(({ reason }) => reason), ...(await fillTables(engine, runs, sql))];
    const result = await engine.query(sql);
    return { ...result, seconds: (performance.now() - started) / 1000, notes };
  } finally {
    engine.close();
  }
}

function notesOf({ truncated, notes }: QueryResult, { rows }: QueryFlags): string[] {
  const more = `the query has more than ${rows} rows: aggregate them, or raise --rows`;
  return [...notes, ...(truncated ? [more] : [])].map(note => `note: ${note}`);
}

/** Longest cell of the printed table; longer texts are cut. */
const cellCharacters = 60;

function table({ columns, rows }: QueryResult): string {
  const cells = [columns.map(({ name }) => cellText(name)), ...rows.map(row => row.map(cellText))];
  const isNumber = columns.map((_, i) => rows.some(row => typeof row[i] === 'number'));
  const widths = columns.map((_, i) => maximum(cells.map(row => row[i].length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, i) => (isNumber[i] ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('  ');
  return cells.map(row => line(row).trimEnd()).join('\n');
}

function cellText(value: QueryValue): string {
  const text = value === null ? '' : typeof value === 'string' ? value.replaceAll('\n', '⏎') : JSON.stringify(value);
  return printable(text.length > cellCharacters ? `${text.slice(0, cellCharacters - 1)}…` : text);
}
