// Formats for pages: the formats of extension/common, and ASCII minus signs for the clipboard.
import { counted, formatNumber, formatPercent, formatSigned, minus } from '../../extension/common/numbers';
import {
  formatChange,
  formatDuration,
  formatPoints,
  formatTick,
  formatValue,
  type Unit,
} from '../../extension/common/format-values';

export { counted, formatChange, formatDuration, formatNumber, formatPercent, formatPoints, formatSigned, formatTick };
export { formatValue, type Unit };

/** Replaces typographic minus signs before digits by ASCII minus signs, for the clipboard. */
export function plainNumbers(text: string): string {
  return text.replace(/−(?=[\d.])/g, '-');
}

/** Makes copied texts use ASCII minus signs, so that numbers can be pasted into code. */
export function copyPlainNumbers(root: Document): void {
  root.addEventListener('copy', event => {
    const text = root.getSelection()?.toString() ?? '';
    if (!text.includes(minus) || !event.clipboardData) return;
    event.clipboardData.setData('text/plain', plainNumbers(text));
    event.preventDefault();
  });
}
