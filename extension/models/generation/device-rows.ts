// Rows of a key-value cache on a device. A row's tokens may be in any slots, because positions are already applied to
// the keys: the host tracks each row's slots, and a mask passes them to the graph. Between turns a row references a
// page: the tensors of the batch or prefill it was last in. A page is freed with its last row.
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

  /** Points the row to another location; a page is freed when its last row leaves it. */
  move(page: Page | null, at: number, slots: number[]): void {
    if (page) page.users++;
    const old = this.page;
    if (old && --old.users === 0) dispose(old.parts);
    Object.assign(this, { page, at, slots });
  }
}

/** The past of several rows, gathered for a run. */
export interface Past {
  /** In the order of the tensors' rows. */
  rows: readonly DeviceRow[];
  /** Null if no row has a past. */
  parts: Tensor[] | null;
  /** Slots per row; row r's tokens are in the first ones. */
  slots: number;
}

/** Returns the additive mask of a past's slots, [rows, 1, 1, 1, slots]; row r attends to the slots `seen[r]`. */
export function maskOf({ slots, rows }: Past, seen: readonly (readonly number[])[]): Tensor {
  const count = Math.max(1, slots);
  const mask = new Float32Array(rows.length * count).fill(masked);
  seen.forEach((own, r) => own.forEach(slot => slot < slots && (mask[r * count + slot] = 0)));
  return float32(mask, [rows.length, 1, 1, 1, count]);
}
export const indices = (xs: readonly number[]): Tensor => int64(BigInt64Array.from(xs, BigInt), [xs.length]);
