// A leaderboard as texts, Markdown and CSV. Pure functions.
import { csvText } from '../common/csv';
import { formatPercent } from '../common/numbers';
import type { EvaluatedSuccess } from './evaluation-file';
import type { LeaderboardTable } from './leaderboard';
import { escapeMarkdown, table as markdownTable } from './report/report-markdown';

/** A table's columns and rows as texts, for pages and Markdown. */
export interface LeaderboardTexts {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Returns a table as texts. Success is a percentage with its 95 % interval. */
export function leaderboardTexts({ tags, rows }: LeaderboardTable): LeaderboardTexts {
  const several = tags.length > 1;
  const success = (value: EvaluatedSuccess | undefined): string => {
    if (!value?.success) return '–';
    const { mean, low, high } = value.success;
    return `${formatPercent(mean)} (${(low * 100).toFixed(1)}–${(high * 100).toFixed(1)})`;
  };
  return {
    heads: ['Model', ...tags, ...(several ? ['All'] : []), 'Episodes', 'Tokens', 'Input tokens', 'Cost', 'Run'],
    rows: rows.map(row => [
      row.model,
      ...tags.map(tag => success(row.success[tag])),
      ...(several ? [success(row.overall)] : []),
      `${row.overall.episodes}${row.failedEnvironments > 0 ? ` (${row.failedEnvironments} failed)` : ''}`,
      row.tokens.toLocaleString('en-US'),
      row.inputTokens?.toLocaleString('en-US') ?? '–',
      row.cost === null ? '–' : row.cost.toFixed(4),
      row.run,
    ]),
  };
}

/** Returns all tables as one CSV: one line per evaluation and environment, with the number of its table. */
export function leaderboardCsv(tables: readonly LeaderboardTable[]): string {
  const heads = [
    ...['table', 'model', 'environment', 'episodes', 'success', 'low', 'high', 'tokens', 'input_tokens', 'cost'],
    ...['seconds', 'run', 'created'],
  ];
  const lines = tables.flatMap(({ tags, rows }, i) =>
    rows.flatMap(row => {
      const places: [string, EvaluatedSuccess][] = tags.map(tag => [tag, row.success[tag]]);
      if (tags.length > 1) places.push(['all', row.overall]);
      return places.map(([tag, { episodes, success }]) => [
        ...[i + 1, row.model, tag, episodes, success?.mean ?? null, success?.low ?? null, success?.high ?? null],
        ...[row.tokens, row.inputTokens, row.cost, row.seconds, row.run, row.created],
      ]);
    }),
  );
  return csvText(heads, lines);
}

/** Returns the sentence above a further table; empty for the first table. */
export const differenceText = ({ differences }: LeaderboardTable): string =>
  differences.length === 0 ? '' : `Other settings than the first table: ${differences.join('; ')}`;

/** Returns all tables as Markdown. */
export const leaderboardMarkdown = (tables: readonly LeaderboardTable[]): string =>
  tables
    .map(table => {
      const { heads, rows } = leaderboardTexts(table);
      const numbers = heads.flatMap((_, column) => (column === 0 || column === heads.length - 1 ? [] : [column]));
      const above = differenceText(table);
      return `${above === '' ? '' : `${escapeMarkdown(above)}\n\n`}${markdownTable({ kind: 'table', heads, rows, numbers })}\n`;
    })
    .join('\n');
