// A batch that is decoded on a device. For each layer, the keys and values of the batch are stored in two parts: the
// past [rows, kvHeads, slots, headSize], and a window of 32 slots. Each step writes one token per row into the window.
// A full window is appended to the past. The past is therefore copied once in 32 steps instead of once per step.
import { appendAll } from '../../common/lists';
import { dispose } from '../../engine/session/device-tensor';
import { masked } from '../../engine/session/padding';
import { float32 } from '../../engine/session/session';
import type { Tensor } from '../../engine/session/session';
import type { DecodingBatch } from './generation-cache';
import { packChunks } from '../graphs/chunk-packing';
import { indices, maskOf } from './device-rows';
import type { Past, Page, DeviceRow } from './device-rows';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { RunGenerate } from './generation-cache';

/** Slots of the window. */
export const windowSlots = 32;

/** Methods of the cache (device-cache.ts) that a batch calls. */
export interface RowPages {
  readonly config: DecoderConfig;
  readonly run: RunGenerate;
  gather(rows: readonly DeviceRow[]): Promise<Past>;
  pastFeeds(past: Past, mask: Tensor): Record<string, Tensor>;
  heldFeeds(parts: readonly Tensor[] | null, rows: number): Record<string, Tensor>;
  fresh(outputs: Readonly<Record<string, Tensor>>): Tensor[];
  joined(past: Past, chunk: Tensor[], slots: number): Promise<{ parts: Tensor[]; slots: number }>;
  upload(tensor: Tensor): Promise<Tensor>;
}

export class DeviceBatch implements DecodingBatch {
  private readonly active: DeviceRow[] = [];
  /** Keys and values of the batch. A row that is finished stays in the tensors until the batch is rebuilt. */
  private past: Past = { rows: [], parts: null, slots: 0 };
  private page: Page = { parts: [], slots: 0, users: 0 };
  private pastMask?: Tensor;
  private window: Tensor[] | null = null;
  private filled = 0;

  constructor(private readonly cache: RowPages) {}

  async enter(rows: readonly DeviceRow[]): Promise<void> {
    if (rows.length === 0) return;
    appendAll(this.active, rows);
    await this.repack();
  }

  async step(tokens: readonly number[]): Promise<Tensor> {
    if (this.past.rows.length > 2 * this.active.length) await this.repack();
    const { cache, past, filled } = this;
    const token = new Map(this.active.map((row, a) => [row, tokens[a]]));
    const { starts, feeds } = packChunks(
      past.rows.map(row => [token.get(row) ?? 0]),
      past.rows.map(({ length }) => length),
      1,
      cache.config,
    );
    const written = new Float32Array(windowSlots);
    written[filled] = 1;
    const seen = new Float32Array(windowSlots).fill(masked).fill(0, 0, filled + 1);
    const outputs = await cache.run({
      ...feeds,
      ...cache.pastFeeds(past, this.pastMask!),
      ...cache.heldFeeds(this.window, past.rows.length),
      written: float32(written, [1, 1, windowSlots, 1]),
      new_mask: float32(seen, [1, 1, 1, 1, windowSlots]),
      rows: indices(this.active.map(row => starts[row.at])),
    });
    if (this.window) dispose(this.window);
    this.window = cache.fresh(outputs);
    for (const row of this.active) row.slots.push(past.slots + filled);
    this.filled++;
    if (this.filled === windowSlots) await this.turnWindow();
    return outputs.logits;
  }

  releaseRow(r: number): void {
    const last = this.active.pop()!;
    if (r < this.active.length) this.active[r] = last;
  }

  async settle(): Promise<void> {
    return this.active.length > 0 ? this.repack() : this.close();
  }

  async close(): Promise<void> {
    await this.turnWindow();
    const { page, past } = this;
    if (this.pastMask) dispose([this.pastMask]);
    this.pastMask = undefined;
    page.parts = past.parts ?? [];
    page.slots = past.slots;
    if (page.users === 0) dispose(page.parts);
    this.past = { rows: [], parts: null, slots: 0 };
    this.page = { parts: [], slots: 0, users: 0 };
  }

  /** Rebuilds the batch from the active rows only; their tokens are gathered from their current pages. */
  private async repack(): Promise<void> {
    await this.close();
    this.past = await this.cache.gather(this.active);
    this.past.rows.forEach((row, b) => row.move(this.page, b, [...row.slots.keys()]));
    await this.makeMask();
  }

  /** Appends the window's slots to the past. */
  private async turnWindow(): Promise<void> {
    if (!this.window) return;
    this.past = { ...this.past, ...(await this.cache.joined(this.past, this.window, windowSlots)) };
    this.window = null;
    this.filled = 0;
    await this.makeMask();
  }

  private async makeMask(): Promise<void> {
    if (this.pastMask) dispose([this.pastMask]);
    const { past, cache } = this;
    const seen = past.rows.map(({ slots }) => slots);
    this.pastMask = await cache.upload(maskOf(past, seen));
  }
}
