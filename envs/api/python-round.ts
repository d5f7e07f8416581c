// Rounding as in Python, for pixels and sizes that must equal those of Python libraries.

/** Returns the nearest whole number; the even one of two equally near ones, as Python's `round`. */
export function roundHalfToEven(x: number): number {
  const down = Math.floor(x);
  if (x - down !== 0.5) return Math.round(x);
  return down % 2 === 0 ? down : down + 1;
}
