// Formats metric values in their units: percentages, durations such as `1 m 12 s`, ticks and differences. Negative
// numbers have a typographic minus sign.
import { formatNumber, formatPercent, formatSigned, minus, threeDigits } from './numbers';

/** Formats a difference of shares in percentage points: `+3.1 pp`. */
export function formatPoints(difference: number): string {
  if (!Number.isFinite(difference)) return '–';
  const text = Math.abs(difference * 100).toFixed(1);
  const sign = Number(text) === 0 ? '' : difference > 0 ? '+' : minus;
  return `${sign}${text} pp`;
}

/** Formats seconds as `850 ms`, `4.20 s`, `1 m 12 s`, `2 h 05 m`, `3 d 4 h`. */
export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–';
  const sign = seconds < 0 ? minus : '';
  const size = Math.abs(seconds);
  if (size === 0) return '0 s';
  if (size < 0.9995) return `${sign}${threeDigits(size * 1000)} ms`;
  if (size < 9.995) return `${sign}${threeDigits(size)} s`;
  const whole = Math.round(size);
  const two = (value: number) => String(value).padStart(2, '0');
  if (whole < 60) return `${sign}${whole} s`;
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  const minutes = Math.round(size / 60);
  if (minutes < 1440) return `${sign}${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
  const hours = Math.round(size / 3600);
  return `${sign}${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Unit of a metric's values. */
export type Unit = 'number' | 'share' | 'seconds';

/** Formats a value in its unit. */
export function formatValue(value: number, unit: Unit): string {
  if (unit === 'share') return formatPercent(value);
  return unit === 'seconds' ? formatDuration(value) : formatNumber(value);
}

/** Formats a change of a value in its unit, with sign. */
export function formatChange(change: number, unit: Unit): string {
  if (unit === 'share') return formatPoints(change);
  if (unit === 'number') return formatSigned(change);
  return change > 0 ? `+${formatDuration(change)}` : formatDuration(change);
}

/** Formats an axis tick as briefly as possible. */
export function formatTick(value: number, unit: Unit): string {
  if (unit === 'share') return `${value < 0 ? minus : ''}${trimZeros((Math.abs(value) * 100).toFixed(2))} %`;
  if (unit === 'seconds') return Math.abs(value) < 60 ? `${trimZeros(formatNumber(value))} s` : formatDuration(value);
  return trimZeros(formatNumber(value));
}

function trimZeros(text: string): string {
  return text.replace(/(\.\d*?)0+(?=$|\D)/, '$1').replace(/\.(?=$|\D)/, '');
}
