// In-memory host for the Query page: an answer with lines, one with bars, an error, or hostile texts.
import { queryReady, queryRun, querySave, type QueryAnswer } from '../../../extension/protocol/query-page';
import type { QueryResult } from '../../../extension/protocol/query-result';
import { hostileTexts } from './data';
import type { MemoryHost } from './memory-host';

export type QueryScenario = 'lines' | 'bars' | 'error' | 'hostile';

const column = (name: string, type: string) => ({ name, type });
const answered = (columns: QueryResult['columns'], rows: QueryResult['rows']): QueryAnswer => ({
  result: { columns, rows, truncated: false, seconds: 0.214, notes: [] },
});

/** Validation success of two runs over steps. */
const lines = (): QueryAnswer =>
  answered(
    [column('step', 'INTEGER'), column('success', 'DOUBLE'), column('name', 'VARCHAR')],
    Array.from({ length: 13 }, (_, i) => i * 4).flatMap(step => [
      [step, 0.25 + 0.6 * (1 - Math.exp(-step / 14)), 'grpo seed 1'],
      [step, 0.22 + 0.35 * (1 - Math.exp(-step / 30)), 'ppo seed 1'],
    ]),
  );

const bars = (): QueryAnswer =>
  answered(
    [
      column('learning_rate', 'VARCHAR'),
      column('best', 'DOUBLE'),
      column('runs', 'BIGINT'),
      column('tags', 'VARCHAR[]'),
    ],
    [
      ['1e-4', 0.703125, 3, ['paper']],
      ['4e-4', 0.625, 3, []],
      ['1e-3', 0.1875, 2, []],
      [null, null, 1, []],
    ],
  );

const hostile = (): QueryAnswer =>
  answered(
    [column('text', 'VARCHAR'), column('n', 'BIGINT')],
    hostileTexts.map((text, i) => [text, i + 1]),
  );

const answers: Record<QueryScenario, () => QueryAnswer> = {
  lines,
  bars,
  hostile,
  error: () => ({ error: 'query: Parser Error: syntax error at or near "SELEC" · LINE 1: SELEC name FROM runs' }),
};

export const queryHost = (scenario: QueryScenario): MemoryHost => ({
  answer: (method: string): unknown => {
    if (method === queryReady.method) return { folder: 'lakes', rows: 10_000 };
    if (method === queryRun.method) return answers[scenario]();
    if (method === querySave.method) return true;
    throw new Error(`no answer to ${method}`);
  },
});
