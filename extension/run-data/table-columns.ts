// Columns of the run table. A column is a field of the run's summary, a key of its configuration, or a metric: its last
// value, its best value, or its value at a step. The identifier of a column is a text, such as `name`,
// `config(algorithm.adv_estimator)`, `best(val-env/lake/success)` or `at(40,actor/entropy)`. Filters, sort orders and
// saved views refer to columns by these identifiers. Pure functions.

/** Fields of a run's summary that are columns. */
export const tableFields = [
  'name',
  'state',
  'progress',
  'success',
  'reward',
  'tags',
  'notes',
  'created',
  'configuration',
  'trainer',
  'id',
] as const;
export type TableField = (typeof tableFields)[number];

/** Which value of a metric a column contains; a number is a step. */
export type MetricValue = 'last' | 'best' | number;

export type RunColumn =
  | { readonly kind: 'field'; readonly field: TableField }
  | { readonly kind: 'config'; readonly key: string }
  | { readonly kind: 'metric'; readonly key: string; readonly at: MetricValue };

/** Value of a column for one run; null if the run has none. */
export type Cell = number | string | null;

/** Returns the identifier of a column. */
export function columnId(column: RunColumn): string {
  switch (column.kind) {
    case 'field':
      return column.field;
    case 'config':
      return `config(${column.key})`;
    case 'metric':
      return typeof column.at === 'number' ? `at(${column.at},${column.key})` : `${column.at}(${column.key})`;
  }
}

/** Returns the column with an identifier; null if the text is no identifier. */
export function parseColumn(id: string): RunColumn | null {
  const field = tableFields.find(name => name === id);
  if (field) return { kind: 'field', field };
  const [, step, ofStep] = /^at\((\d{1,9}),(.+)\)$/s.exec(id) ?? [];
  if (step !== undefined) return { kind: 'metric', key: ofStep, at: Number(step) };
  const [, kind, key] = /^(config|last|best)\((.+)\)$/s.exec(id) ?? [];
  if (kind === undefined) return null;
  return kind === 'config' ? { kind, key } : { kind: 'metric', key, at: kind === 'best' ? 'best' : 'last' };
}

/** Returns whether the best value of a metric is its highest or its lowest. */
export const bestOf = (key: string): 'highest' | 'lowest' =>
  /(^|[/_])(loss|kl|invalid_answer_rate|manager_invalid_action|env_error_rate|time_per_step)$|^timing_s\//.test(key)
    ? 'lowest'
    : 'highest';

/**
 * Returns a function that finds the column that a filter names: an identifier, a field, a complete configuration key or
 * metric key, or the last part of a key if no other key has the same last part. A metric without further details is its
 * last value. The function returns null if no column or more than one column has the name.
 */
export function columnResolver(
  configKeys: readonly string[],
  metricKeys: readonly string[],
): (name: string) => string | null {
  const ids = new Map<string, string>();
  const endings = new Map<string, string | null>();
  const add = (key: string, id: string, separator: string): void => {
    if (!ids.has(key)) ids.set(key, id);
    const ending = key.slice(key.lastIndexOf(separator) + 1);
    endings.set(ending, endings.has(ending) && endings.get(ending) !== id ? null : id);
  };
  for (const key of configKeys) add(key, columnId({ kind: 'config', key }), '.');
  for (const key of metricKeys) add(key, columnId({ kind: 'metric', key, at: 'last' }), '/');
  return name => (parseColumn(name) ? name : (ids.get(name) ?? endings.get(name) ?? null));
}
