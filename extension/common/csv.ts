// Comma-separated values (RFC 4180).

const field = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/**
 * Returns a table as CSV with a header line. Null becomes an empty field, a number or a truth value its JSON, and a list
 * or an object its JSON in quotes.
 */
export const csvText = (heads: readonly string[], rows: readonly (readonly unknown[])[]): string =>
  [heads, ...rows].map(cells => `${cells.map(field).join(',')}\n`).join('');
