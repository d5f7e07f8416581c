// What every part of the torture run is given, and how it shows what it did. A part throws where a promise is broken, with the seed that
// breaks it again; otherwise its table is the evidence.

/** How much of the torture a part does, and from which seed its random streams come. */
export interface TortureScale {
  /** 1 is the whole torture; 0.1 is a tenth of its cases. */
  scale: number;
  seed: number;
  /** A line for whoever waits. */
  say(line: string): void;
}

/** One part of the torture. @throws with the sentence that tells what broke */
export type TorturePart = (scale: TortureScale) => Promise<void>;

/** How many of `whole` cases a scale asks for; at least one. */
export const scaled = (whole: number, { scale }: Pick<TortureScale, 'scale'>): number =>
  Math.max(1, Math.round(whole * scale));

/** Rows under a heading, in columns: the first to the left, numbers to the right. */
export function table(heading: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [heading, ...rows].map(row => row.map(cell => (typeof cell === 'number' ? cell.toLocaleString('en') : cell))); // prettier-ignore
  const widths = heading.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ').trimEnd(); // prettier-ignore
  return lines.map(line).join('\n');
}
