// Number formats shared by pages, hovers and traces: three significant digits, SI prefixes, a Unicode minus sign.

/** Unicode minus sign of formatted numbers. */
export const minus = '−';

const prefixes: [number, string][] = [
  [1e12, ' T'],
  [1e9, ' G'],
  [1e6, ' M'],
  [1e3, ' k'],
];

/**
 * Formats a number as `0.123`, `12.3 k` or `1.20e−4`. Integers below 1000 are unchanged; non-finite values become a
 * dash.
 */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  const sign = value < 0 ? minus : '';
  if (size === 0) return '0';
  if (size >= 1e15) return sign + size.toExponential(2).replace('e+', 'e');
  for (const [divisor, prefix] of prefixes) {
    // A number such as 999.5 would be rounded to 1000, so it is written with the next SI prefix.
    if (size >= divisor * 0.9995) return sign + threeDigits(size / divisor) + prefix;
  }
  if (Number.isInteger(size)) return sign + String(size);
  if (size < 0.0009995) return sign + size.toExponential(2).replace('e-', `e${minus}`);
  return sign + threeDigits(size);
}

/** Formats like `formatNumber`, with a plus sign before positive values. */
export function formatSigned(value: number): string {
  return value > 0 ? `+${formatNumber(value)}` : formatNumber(value);
}

/** Formats a count: `1 turn`, `2 turns`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Formats a share 0…1 as `61.2 %`. Shares of 0 and of at least 99.95 % are written without a decimal. */
export function formatPercent(share: number): string {
  if (!Number.isFinite(share)) return '–';
  const value = Math.abs(share * 100);
  const text = value === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1);
  return `${share < 0 && Number(text) !== 0 ? minus : ''}${text} %`;
}

/** Formats a size in [0.001, 1000) with three significant digits, without exponent. */
export function threeDigits(size: number): string {
  const text = size.toPrecision(3);
  return text.includes('e') ? String(Number(text)) : text;
}

/** Formats bytes in binary units: `640 MiB`, `2.2 GiB`. */
export const gibibytes = (bytes: number): string =>
  bytes < 2 ** 30 ? `${Math.ceil(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`;
