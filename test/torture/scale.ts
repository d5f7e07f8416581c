// Interface of the parts of the torture run, and the format of their results. A part throws if a guarantee is broken,
// with the seed that reproduces it; otherwise it prints a table.

/** The scale of a part, and the seed of its random streams. */
export interface TortureScale {
  /** 1 is full scale; 0.1 is a tenth of the cases. */
  scale: number;
  seed: number;
  /** Prints a line of progress. */
  say(line: string): void;
}

/** One part of the torture run. @throws with the guarantee that was broken */
export type TorturePart = (scale: TortureScale) => Promise<void>;

/** `whole` times the scale, rounded; at least 1. */
export const scaled = (whole: number, { scale }: Pick<TortureScale, 'scale'>): number =>
  Math.max(1, Math.round(whole * scale));

/** Formats rows under a heading as columns. The first column is left-aligned; numbers are right-aligned. */
export function table(heading: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [heading, ...rows].map(row =>
    row.map(cell => (typeof cell === 'number' ? cell.toLocaleString('en') : cell)),
  );
  const widths = heading.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ')
      .trimEnd();
  return lines.map(line).join('\n');
}
