// Arithmetic on dimensions (numbers or symbols): NumPy broadcasting, and checks of shapes. The error message of a
// failed check contains the two shapes.
import type { Dim, FloatType, Value } from './graph';

export const showDims = (dims: readonly Dim[]): string => `[${dims.join(', ')}]`;

export const sameDims = (a: readonly Dim[], b: readonly Dim[]): boolean =>
  a.length === b.length && a.every((dim, i) => dim === b[i]);

/** Returns the dimensions of a ∘ b under NumPy broadcasting; a symbol matches itself and 1. */
export function broadcast(a: readonly Dim[], b: readonly Dim[]): Dim[] {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const x = a[i - rank + a.length] ?? 1;
    const y = b[i - rank + b.length] ?? 1;
    if (x === y || y === 1) return x;
    if (x === 1) return y;
    throw new Error(`graph: shapes ${showDims(a)} and ${showDims(b)} do not broadcast`);
  });
}

/**
 * Returns the axes over which a gradient with dimensions `from` (after broadcasting) must be summed to have dimensions
 * `to`.
 */
export function summedAxes(from: readonly Dim[], to: readonly Dim[]): number[] {
  const offset = from.length - to.length;
  return from.flatMap((dim, i) => (i < offset || (to[i - offset] === 1 && dim !== 1) ? [i] : []));
}

export function expectType(op: string, value: Value, type: Value['type']): void {
  if (value.type !== type) throw new Error(`graph: ${op} needs ${type}, got ${value.type} for ${value.name}`);
}

/** Returns the value's type; throws unless it is float32 or float16. */
export function expectFloat(op: string, value: Value): FloatType {
  if (value.type !== 'float32' && value.type !== 'float16')
    throw new Error(`graph: ${op} needs float32 or float16, got ${value.type} for ${value.name}`);
  return value.type;
}

/** Throws unless the value has exactly these dimensions. */
export function expectDims(op: string, value: Value, dims: readonly Dim[]): void {
  if (!sameDims(value.dims, dims))
    throw new Error(`graph: ${op} needs ${showDims(dims)}, got ${showDims(value.dims)} for ${value.name}`);
}

/**
 * Throws if two shapes certainly have different numbers of elements: both have the same symbolic dimensions, but the
 * products of their fixed dimensions differ.
 */
export function expectSameCount(op: string, a: readonly Dim[], b: readonly Dim[]): void {
  const symbols = (dims: readonly Dim[]): string =>
    dims
      .filter(dim => typeof dim === 'string')
      .sort()
      .join();
  const count = (dims: readonly Dim[]): number => dims.reduce<number>((n, d) => (typeof d === 'number' ? n * d : n), 1);
  if (symbols(a) === symbols(b) && count(a) !== count(b))
    throw new Error(`graph: ${op} needs equal numbers of elements, got ${showDims(a)} and ${showDims(b)}`);
}

/** Throws unless two dimensions are the same number or the same symbol. */
export function expectDim(op: string, a: Dim, b: Dim): void {
  if (a !== b) throw new Error(`graph: ${op} needs equal dimensions, got ${a} and ${b}`);
}
