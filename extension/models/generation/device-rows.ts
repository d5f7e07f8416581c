// Rows of a key-value cache on a device. The tokens of a row may be in any slots and in any order, because each key
// contains the position of its token. The host stores the slots of each row and passes them to the graph as a mask.
// Between turns a row refers to a page: the tensors of its last batch or prefill. A page is freed when no row refers to
// it.
import { dispose } from '../../engine/session/device-tensor';
import { masked } from '../../engine/session/padding';
import { float32, int64 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { CachedRow } from './generation-cache';

/** Keys and values of several rows, 2·layers tensors [rows, kvHeads, slots, headSize], with a reference count. */
export interface Page {
  parts: Tensor[];
  slots: number;
  users: number;
}

export class DeviceRow implements CachedRow {
  pending: number | null = null;
  page: Page | null = null;
  /** Row index within the page. */
  at = 0;
  /** Slot of each token within the page. */
  slots: number[] = [];

  get length(): number {
    return this.slots.length;
  }

  get nextPosition(): number {
    return this.slots.length;
  }

  /** Sets the location of the row; frees the previous page if no other row refers to it. */
  move(page: Page | null, at: number, slots: number[]): void {
    if (page) page.users++;
    const old = this.page;
    if (old && --old.users === 0) dispose(old.parts);
    Object.assign(this, { page, at, slots });
  }
}

/** The past of several rows, gathered for a run. The past of a row is the keys and values of its cached tokens. */
export interface Past {
  /** Rows in the order of the tensors' first axis. */
  rows: readonly DeviceRow[];
  /** Keys and values, two tensors per layer; null if no row has cached tokens. */
  parts: Tensor[] | null;
  /** Number of slots per row. The cached tokens of a row are in the row's first slots. */
  slots: number;
}

/** Returns the additive mask [rows, 1, 1, 1, slots] of a past; row r attends to the slots `seen[r]`. */
export function maskOf({ slots, rows }: Past, seen: readonly (readonly number[])[]): Tensor {
  const count = Math.max(1, slots);
  const mask = new Float32Array(rows.length * count).fill(masked);
  seen.forEach((own, r) => own.forEach(slot => slot < slots && (mask[r * count + slot] = 0)));
  return float32(mask, [rows.length, 1, 1, 1, count]);
}
export const indices = (xs: readonly number[]): Tensor => int64(BigInt64Array.from(xs, BigInt), [xs.length]);
