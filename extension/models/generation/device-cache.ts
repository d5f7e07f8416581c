// The generator's key-value cache on a device. Keys and values never leave the device: a run returns them as device
// tensors, which are inputs of the next run. Each step uploads ids, positions and indices, and downloads the sampled
// tokens. Between turns a row refers to a page (device-rows.ts); device-batch.ts decodes several rows together.
import { maximum } from '../../common/lists';
import { dispose } from '../../engine/session/device-tensor';
import { Graph } from '../../engine/graph/graph';
import type { Dim, Value } from '../../engine/graph/graph';
import { Session, float32, int32, loweringOf } from '../../engine/session/session';
import type { SessionOptions, Tensor } from '../../engine/session/session';
import { Transfer } from '../../engine/session/transfer';
import type { DecoderConfig } from '../decoder/decoder-config';
import type { CachedRow, Chunk, DecodingBatch, GenerationCache, RunGenerate } from './generation-cache';
import { block, newName, pastName } from './key-value-cache';
import { packChunks } from '../graphs/chunk-packing';
import { DeviceRow, maskOf, indices } from './device-rows';
import type { Page, Past } from './device-rows';
import { DeviceBatch } from './device-batch';

export class DeviceCache implements GenerationCache {
  private readonly transfer: Transfer;
  private readonly sessions = new Map<string, Promise<Session>>();

  constructor(
    readonly config: DecoderConfig,
    private readonly options: SessionOptions,
    /** Runs the generate graph; its outputs must stay on the device. */
    readonly run: RunGenerate,
  ) {
    this.transfer = new Transfer(options);
  }

  row(): CachedRow {
    return new DeviceRow();
  }

  forget(row: DeviceRow): void {
    row.move(null, 0, []);
  }

  async prefill(chunks: readonly (Chunk & { rows: readonly DeviceRow[] })[]): Promise<Tensor> {
    const past = await this.gather(chunks.map(({ rows }) => rows[0]));
    const sources = past.rows.map(owner => chunks.find(({ rows }) => rows[0] === owner)!);
    const { starts, feeds } = packChunks(
      sources.map(({ ids }) => ids),
      past.rows.map(({ length }) => length),
      block,
      this.config,
    );
    const t = Number(feeds.new_mask.dims[0]);
    const seen = past.rows.map(({ slots }) => [...slots.keys()]);
    const last = new Map(sources.map((chunk, b) => [chunk, starts[b] + chunk.ids.length - 1]));
    const outputs = await this.run({
      ...feeds,
      ...this.pastFeeds(past, maskOf(past, seen)),
      ...this.heldFeeds(null, sources.length),
      written: float32(new Float32Array(t).fill(1), [1, 1, t, 1]),
      new_mask: { ...feeds.new_mask, dims: [1, 1, 1, t, t] },
      rows: indices(chunks.flatMap(chunk => chunk.rows.map(() => last.get(chunk)!))),
    });
    const page: Page = { ...(await this.joined(past, this.fresh(outputs), t)), users: 0 };
    sources.forEach(({ rows, ids }, b) => {
      const slots = [...seen[b], ...ids.map((_, i) => past.slots + i)];
      for (const row of rows) row.move(page, b, [...slots]);
    });
    return outputs.logits;
  }

  batch(): DecodingBatch {
    return new DeviceBatch(this);
  }

  /** Copies the keys and values of the rows out of their pages into contiguous slots. */
  async gather(rows: readonly DeviceRow[]): Promise<Past> {
    const slots = Math.ceil(maximum(rows.map(row => row.length)) / block) * block;
    if (slots === 0) return { rows, parts: null, slots };
    const pages = [...new Set(rows.map(({ page }) => page))];
    const grouped = pages.map(page => rows.filter(row => row.page === page));
    let parts: Tensor[] = [];
    for (const [i, page] of pages.entries()) {
      const own = await this.gatherPage(page, grouped[i], slots);
      parts = i === 0 ? own : await this.concatenated(parts, own, 0);
    }
    return { rows: grouped.flat(), parts, slots };
  }

  /** Returns the cached keys and values of several rows, and their mask, as feeds. */
  pastFeeds({ parts, rows }: Past, mask: Tensor): Record<string, Tensor> {
    return { past_mask: mask, ...this.named(pastName, parts ?? this.emptySlots(rows.length)) };
  }

  /**
   * Returns the slots that the chunk has before a run, as feeds. The run returns these slots with the new tokens added.
   */
  heldFeeds(parts: readonly Tensor[] | null, rows: number): Record<string, Tensor> {
    return this.named(heldName, parts ?? this.emptySlots(rows));
  }

  /** Returns the chunk's slots from the outputs of a run. */
  fresh(outputs: Readonly<Record<string, Tensor>>): Tensor[] {
    return Array.from({ length: 2 * this.config.layers }, (_, i) => outputs[newName(i)]);
  }

  /**
   * Appends the slots of a chunk to the cached keys and values of its rows. Disposes of the old tensors; the caller
   * owns the new tensors.
   */
  async joined(past: Past, chunk: Tensor[], slots: number): Promise<{ parts: Tensor[]; slots: number }> {
    const parts = past.parts ? await this.concatenated(past.parts, chunk, 2) : chunk;
    return { parts, slots: past.slots + slots };
  }

  upload(tensor: Tensor): Promise<Tensor> {
    return this.transfer.upload(tensor);
  }

  private named(name: (i: number) => string, parts: readonly Tensor[]): Record<string, Tensor> {
    return Object.fromEntries(parts.map((part, i) => [name(i), part]));
  }

  /** Returns one empty slot per row, for inputs that must not have zero slots. */
  private emptySlots(rows: number): Tensor[] {
    const { kvHeads, headSize, layers } = this.config;
    const empty = zeros([rows, kvHeads, 1, headSize]);
    return Array.from({ length: 2 * layers }, () => empty);
  }

  private async gatherPage(page: Page | null, rows: readonly DeviceRow[], slots: number): Promise<Tensor[]> {
    const { kvHeads, headSize, layers } = this.config;
    const dims = [rows.length, kvHeads, slots];
    if (!page) {
      const empty = zeros([...dims, headSize]);
      return Promise.all(Array.from({ length: 2 * layers }, () => this.upload(empty)));
    }
    // Slots after the last token of a row contain copies of the row's first token; the mask excludes these slots.
    const places = new Int32Array(rows.length * kvHeads * slots);
    rows.forEach((row, r) => {
      for (let h = 0; h < kvHeads; h++) {
        const from = (row.at * kvHeads + h) * page.slots;
        const to = (r * kvHeads + h) * slots;
        for (let s = 0; s < slots; s++) places[to + s] = from + (row.slots[s] ?? row.slots[0]);
      }
    });
    const index = await this.upload(int32(places, dims));
    const session = await this.session('take', g => {
      const from = g.input('from', 'float32', ['n', kvHeads, 'u', headSize]);
      const index = g.input('places', 'int32', ['b', kvHeads, 's']);
      const flat = g.emit('Reshape', [from, g.integers([-1, headSize])], 'float32', ['n*h*u', headSize]);
      return g.emit('Gather', [flat, index], 'float32', [...index.dims, headSize], { axis: 0 });
    });
    const taken: Tensor[] = [];
    for (const part of page.parts) taken.push((await session.run({ from: part, places: index })).to);
    dispose([index]);
    return taken;
  }

  /** Concatenates tensors pairwise and disposes of the inputs. */
  private async concatenated(a: readonly Tensor[], b: readonly Tensor[], axis: 0 | 2): Promise<Tensor[]> {
    const { kvHeads, headSize } = this.config;
    const session = await this.session(`join axis ${axis}`, g => {
      const dims = (own: string): Dim[] => (axis === 0 ? [own, kvHeads, 's', headSize] : ['b', kvHeads, own, headSize]);
      const [first, second] = [g.input('a', 'float32', dims('x')), g.input('b', 'float32', dims('y'))];
      return g.emit('Concat', [first, second], 'float32', dims('x+y'), { axis });
    });
    const result: Tensor[] = [];
    for (const [i, part] of a.entries()) {
      result.push((await session.run({ a: part, b: b[i] })).to);
      dispose([part, b[i]]);
    }
    return result;
  }

  private session(name: string, build: (g: Graph) => Value): Promise<Session> {
    let session = this.sessions.get(name);
    if (!session) {
      const g = new Graph(`cache: ${name}`, loweringOf(this.options));
      g.output('to', build(g));
      this.sessions.set(name, (session = Session.create(g, { ...this.options, resident: () => true })));
    }
    return session;
  }
}

const heldName = (i: number): string => `held_${newName(i)}`;
const zeros = (dims: number[]): Tensor => float32(new Float32Array(dims.reduce((n, d) => n * d, 1)), dims);
