// Packing of arbitrary samples. Passes contain every sample once and within the budget; samples share equal prefixes
// only; indices map each token to its packed position and back.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { causalMask, masked } from '../../../../extension/engine/session/padding';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import type { Tensor } from '../../../../extension/engine/session/session';
import { batchFeeds, chunkFeeds, headChunks } from '../../../../extension/models/graphs/batch-feeds';
import { packChunks } from '../../../../extension/models/graphs/chunk-packing';
import { packPass } from '../../../../extension/models/graphs/packing';
import { planPasses } from '../../../../extension/models/graphs/pass-plan';
import type { Pass, PassCosts } from '../../../../extension/models/graphs/pass-plan';
import { batch, budget, costs, groupedConfig as config } from './batches';

type Batch = { ids: Int32Array }[];
const grouped = fc.constantFrom({ heads: 4, kvHeads: 2 }, { heads: 2, kvHeads: 2 }, { heads: 3, kvHeads: 1 });

const beginAlike = (a: Int32Array, b: Int32Array): number => {
  let k = 0;
  while (k < Math.min(a.length, b.length) - 1 && a[k] === b[k]) k++;
  return k;
};
const packedTokens = ({ clusters }: Pass, samples: Batch): number =>
  clusters.reduce(
    (sum, { members, prefix }) => sum + members.reduce((n, i) => n + samples[i].ids.length - prefix, prefix),
    0,
  );

describe('planned passes', () => {
  it('contain every sample exactly once, within the budget', () => {
    fc.assert(
      fc.property(batch, budget, costs, (samples, { maxTokens, maxRows }, costs) => {
        const passes = planPasses(samples, { maxTokens, maxRows }, costs);
        const members = passes.flatMap(({ clusters }) => clusters.flatMap(cluster => cluster.members));
        expect([...members].sort((a, b) => a - b)).toEqual([...samples.keys()]);
        for (const pass of passes) {
          const rows = pass.clusters.reduce((sum, cluster) => sum + cluster.members.length, 0);
          expect(rows).toBeLessThanOrEqual(maxRows);
          if (rows > 1) expect(packedTokens(pass, samples)).toBeLessThanOrEqual(maxTokens);
        }
      }),
    );
  });

  it('share a prefix among samples that have it, and each sample continues after it', () => {
    fc.assert(
      fc.property(batch, budget, costs, (samples, limits, costs) => {
        for (const { shared, clusters } of planPasses(samples, limits, costs)) {
          expect(clusters.some(({ members, prefix }) => members.length > 1 && prefix > 0)).toBe(shared);
          for (const { members, prefix } of clusters) {
            if (!shared) expect([members.length, prefix]).toEqual([1, 0]);
            if (prefix === 0) expect(members).toHaveLength(1);
            const [first] = members;
            for (const member of members) {
              expect(prefix).toBeLessThanOrEqual(samples[member].ids.length - 1);
              expect(samples[member].ids.slice(0, prefix)).toEqual(samples[first].ids.slice(0, prefix));
            }
          }
        }
      }),
    );
  });

  it('depend on the samples, the budget and the costs only', () => {
    fc.assert(
      fc.property(batch, budget, costs, (samples, limits, costs) => {
        const copies = samples.map(({ ids }) => ({ ids: ids.slice() }));
        expect(planPasses(copies, limits, costs)).toEqual(planPasses(samples, limits, costs));
      }),
    );
  });

  it('share as many prefix tokens as neighbours in the order of their ids allow if only tokens cost', () => {
    fc.assert(
      fc.property(
        batch.filter(samples => samples.length <= 9),
        fc.integer({ min: 1, max: 9 }),
        (samples, maxRows) => {
          const order = samples
            .map(({ ids }) => ids)
            .sort((a, b) => {
              const k = a.findIndex((id, i) => id !== b[i]);
              return k >= 0 && k < b.length ? a[k] - b[k] : a.length - b.length;
            });
          /**
           * Maximum number of tokens saved by cutting `order`, from `start` on, into clusters. Prefixes shorter than 8
           * are not shared.
           */
          const most = (start: number): number => {
            if (start === order.length) return 0;
            let best = most(start + 1);
            let prefix = Infinity;
            for (let end = start + 2; end <= order.length && end - start <= maxRows; end++) {
              prefix = Math.min(prefix, beginAlike(order[end - 2], order[end - 1]));
              if (prefix >= 8) best = Math.max(best, (end - start - 1) * prefix + most(end));
            }
            return best;
          };
          const passes = planPasses(samples, { maxTokens: Infinity, maxRows }, { token: 1e6, pass: 0 });
          const planned = passes.reduce((sum, pass) => sum + packedTokens(pass, samples), 0);
          const all = samples.reduce((sum, { ids }) => sum + ids.length, 0);
          expect(all - planned).toBe(most(0));
        },
      ),
    );
  });

  it('put rows of one length into one pass, and cut off a long row if its padding costs more than a pass', () => {
    const row = (length: number, first: number) => ({ ids: Int32Array.from({ length }, (_, i) => first + i) });
    const passesOf = (lengths: number[], costs: PassCosts): number[][] =>
      planPasses(
        lengths.map((length, i) => row(length, 1000 * i)),
        { maxTokens: Infinity, maxRows: Infinity },
        costs,
      ).map(({ clusters }) => clusters.flatMap(({ members }) => members).sort((a, b) => a - b));
    expect(passesOf([50, 50, 50, 50], { token: 1, pass: 10 })).toEqual([[0, 1, 2, 3]]);
    // A pass of all rows computes 3 · 0.75 · (100² − 10²) = 22275 more pairs.
    expect(passesOf([10, 100, 10, 10], { token: 1, pass: 22_000 })).toEqual([[1], [0, 2, 3]]);
    expect(passesOf([10, 100, 10, 10], { token: 1, pass: 22_500 })).toEqual([[0, 1, 2, 3]]);
  });
});

const numbers = ({ data }: Tensor): number[] => Array.from(data as ArrayLike<number | bigint>, Number);

/** Asserts that the back index of each row leads to that row. */
function expectInverse(forward: number[], back: number[], rows: number, read: Set<number>): void {
  expect(back).toHaveLength(rows);
  back.forEach((place, row) => read.has(row) && expect(forward[place], `row ${row}`).toBe(row));
}

describe('a packed pass', () => {
  it('contains each token of each member, with its position', () => {
    fc.assert(
      fc.property(batch, budget, costs, grouped, (samples, limits, costs, heads) => {
        for (const pass of planPasses(samples, limits, costs)) {
          const { feeds, members, tokens, at } = packPass(pass, samples, heads);
          const [ids, positions] = [numbers(feeds.ids), numbers(feeds.positions)];
          expect(members).toEqual(pass.clusters.flatMap(cluster => cluster.members));
          expect([ids.length, positions.length]).toEqual([tokens, tokens]);
          const seen = new Set<number>();
          members.forEach((member, k) =>
            samples[member].ids.forEach((id, position) => {
              const place = at(k, position);
              seen.add(place);
              expect([ids[place], positions[place]]).toEqual([id, position]);
            }),
          );
          expect(seen.size).toBe(packedTokens(pass, samples));
          expect(tokens - seen.size).toBeLessThanOrEqual(1); // the difference is the padding token
        }
      }),
    );
  });

  it('maps every head of every token to a position in the attention blocks and back', () => {
    fc.assert(
      fc.property(batch, budget, costs, grouped, (samples, limits, costs, c) => {
        for (const pass of planPasses(samples, limits, costs)) {
          const { feeds, tokens, at } = packPass(pass, samples, c);
          const sorts = [
            { stem: 'query', heads: c.heads, groups: c.heads / c.kvHeads },
            { stem: 'key', heads: c.kvHeads, groups: 1 },
          ];
          for (const { stem, heads, groups } of sorts) {
            const blocks = pass.shared ? [feeds[`${stem}_prefixes`], feeds[`${stem}_rows`]] : [feeds[`${stem}_rows`]];
            const forward = blocks.flatMap(numbers);
            const all = new Set(Array.from({ length: tokens * heads }, (_, row) => row));
            expectInverse(forward, numbers(feeds[`${stem}_places`]), tokens * heads, all);

            // Attention reads block by block and, within a block, key head by key head: first the tokens of each row in
            // order, then the padding token.
            const standIn = tokens - 1;
            const expected: number[] = [];
            const { clusters } = pass;
            const u = Math.max(...clusters.map(({ prefix }) => prefix));
            const t = Math.max(
              2,
              ...clusters.flatMap(({ members, prefix }) => members.map(i => samples[i].ids.length - prefix)),
            );
            const firsts = clusters.map((_, p) =>
              clusters.slice(0, p).reduce((n, { members }) => n + members.length, 0),
            );
            const block = (token: (s: number) => number, length: number): void => {
              for (let k = 0; k < c.kvHeads; k++)
                for (let j = 0; j < groups; j++)
                  for (let s = 0; s < length; s++) expected.push(token(s) * heads + k * groups + j);
            };
            if (pass.shared)
              clusters.forEach(({ prefix }, p) => block(s => (s < prefix ? at(firsts[p], s) : standIn), u));
            clusters.forEach(({ members, prefix }, p) =>
              members.forEach((member, m) =>
                block(s => (s < samples[member].ids.length - prefix ? at(firsts[p] + m, prefix + s) : standIn), t),
              ),
            );
            expect(forward).toEqual(expected);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it('lets tokens attend to their own row up to themselves, and to the real tokens of the prefix', () => {
    fc.assert(
      fc.property(batch, budget, costs, (samples, limits, costs) => {
        for (const pass of planPasses(samples, limits, costs)) {
          const { feeds, members } = packPass(pass, samples, config);
          const t = feeds.key_rows.dims.at(-1)!;
          const u = pass.shared ? feeds.key_prefixes.dims.at(-1)! : 0;
          const early = Math.ceil(t / 2);
          expect(t).toBeGreaterThan(1);
          const prefixes = pass.clusters.flatMap(cluster => cluster.members.map(() => cluster.prefix));
          if (pass.shared) {
            expect(feeds.prefixes_mask).toEqual(causalMask(u));
            const owners = pass.clusters.flatMap((cluster, p) => cluster.members.map(() => p));
            expect(numbers(feeds.row_prefixes)).toEqual(owners);
            expect(feeds.prefix_rows.dims).toEqual([pass.clusters.length, members.length]);
            expect(numbers(feeds.prefix_rows)).toEqual(
              pass.clusters.flatMap((_, p) => owners.map(q => Number(p === q))),
            );
          }
          for (const [name, from, to] of [
            ['early', 0, early],
            ['late', early, t],
          ] as const) {
            const causal: number[] = [];
            for (let i = from; i < to; i++) for (let k = 0; k < u + to; k++) causal.push(k - u <= i ? 0 : masked);
            expect(feeds[`${name}_mask`].dims).toEqual([to - from, u + to]);
            expect(numbers(feeds[`${name}_mask`])).toEqual(causal.map(Math.fround));
            if (!pass.shared) continue;
            const slots = prefixes.flatMap(prefix =>
              Array.from({ length: u + to }, (_, k) => (k >= prefix && k < u ? masked : 0)),
            );
            expect(feeds[`${name}_slots`].dims).toEqual([members.length, 1, 1, 1, u + to]);
            expect(numbers(feeds[`${name}_slots`])).toEqual(slots.map(Math.fround));
          }
        }
      }),
    );
  });

  it('names the tokens of the last layer, and the slots that each of them attends to', () => {
    fc.assert(
      fc.property(batch, budget, costs, grouped, fc.integer(), (samples, limits, costs, c, seed) => {
        const stream = new RandomStream(seed);
        for (const pass of planPasses(samples, limits, costs)) {
          const { feeds, members, at, last } = packPass(pass, samples, c);
          const positions = members.map(member =>
            [...samples[member].ids.keys()].filter(() => stream.integer(2) === 0),
          );
          fc.pre(positions.flat().length > 0);
          const given = last(positions);
          const u = pass.shared ? feeds.key_prefixes.dims.at(-1)! : 0;
          const prefixes = pass.clusters.flatMap(cluster => cluster.members.map(() => cluster.prefix));
          const wanted = positions.flatMap((of, k) => of.map(position => ({ k, position })));
          const w = given.last_reach.dims[3];
          const dummies = Number(wanted.length < members.length * w);
          const tokens = numbers(given.last_tokens);
          expect(tokens).toHaveLength(wanted.length + dummies);
          expect(tokens.slice(0, wanted.length)).toEqual(wanted.map(({ k, position }) => at(k, position)));
          expect(numbers(given.last_positions).slice(0, wanted.length)).toEqual(wanted.map(({ position }) => position));
          const [forward, back] = [numbers(given.last_queries), numbers(given.last_places)];
          const all = new Set(Array.from({ length: wanted.length * c.heads }, (_, row) => row));
          expectInverse(forward, back, tokens.length * c.heads, all);
          const groups = c.heads / c.kvHeads;
          const reach = numbers(given.last_reach);
          wanted.forEach(({ k, position }, i) => {
            const place = back[i * c.heads];
            expect(Math.floor(place / (c.kvHeads * groups * w))).toBe(k);
            expect(reach[k * w + (place % w)]).toBe(position < prefixes[k] ? position : u + position - prefixes[k]);
          });
        }
      }),
    );
  });
});

describe('maps between samples and packed tokens', () => {
  it('read a masked token at the position that predicts it, and return every array to its sample', () => {
    fc.assert(
      fc.property(batch, budget, costs, fc.integer(), (plain, limits, costs, seed) => {
        const stream = new RandomStream(seed);
        const samples = plain.map(({ ids }) => ({
          ids,
          mask: Uint8Array.from(ids, () => stream.integer(2)),
          values: Float32Array.from(ids, () => stream.normal()),
        }));
        const found: Float32Array[] = [];
        for (const pass of planPasses(samples, limits, costs)) {
          const { feeds, trimmed, count, gather, scatter } = batchFeeds(pass, samples, config);
          const [ids, positions, given, targets] = ['ids', 'positions', 'rows', 'targets'].map(name =>
            numbers(feeds[name]),
          );
          const rows = trimmed ? given.map(row => numbers(feeds.last_tokens)[row]) : given;
          const wanted = pass.clusters.flatMap(({ members }) =>
            members.flatMap(k =>
              [...samples[k].ids].flatMap((id, i) => (i > 0 && samples[k].mask[i] ? [{ k, i, id }] : [])),
            ),
          );
          expect(targets).toEqual(wanted.map(({ id }) => id));
          expect(rows.map(row => positions[row])).toEqual(wanted.map(({ i }) => i - 1));
          expect(rows.map(row => ids[row])).toEqual(wanted.map(({ k, i }) => samples[k].ids[i - 1]));
          expect(count).toBe(wanted.length);
          scatter(gather(s => s.values).data as Float32Array, found);
        }
        const expected = samples.map(({ mask, values }) => values.map((x, i) => (i > 0 && mask[i] ? x : 0)));
        expect(found).toEqual(expected);
      }),
    );
  });

  it('split tokens into head chunks whose sizes differ by at most one and cover all tokens', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9000 }), fc.integer({ min: 1, max: 200_000 }), (count, vocab) => {
        const chunks = headChunks(count, vocab);
        expect(Math.log2(chunks) % 1).toBe(0);
        expect(chunks).toBeLessThanOrEqual(count);
        const bytes = (Math.ceil(count / chunks) * vocab * 4) / 2 ** 20;
        if (chunks < Math.min(64, count / 2)) expect(bytes).toBeLessThan(64 + (vocab * 4) / 2 ** 20);
        if (chunks > 1) expect((count * vocab * 4) / 2 ** 20 / (chunks / 2)).toBeGreaterThan(64);
        const { chunk_sizes } = chunkFeeds(count, chunks);
        if (chunks === 1) {
          expect(chunk_sizes).toBeUndefined();
          return;
        }
        const sizes = numbers(chunk_sizes);
        expect(sizes).toHaveLength(chunks);
        expect(sizes.reduce((a, b) => a + b)).toBe(count);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        expect(Math.min(...sizes)).toBeGreaterThan(0);
      }),
    );
  });
});

describe('packed chunks', () => {
  const row = fc.record({ ids: fc.array(fc.nat(60), { minLength: 1, maxLength: 9 }), past: fc.nat(200) });
  it('continue after their past tokens, are padded to a multiple, and map back to their rows', () => {
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 6 }),
        fc.constantFrom(1, 4, 32),
        grouped,
        (rows, multiple, c) => {
          const chunks = rows.map(({ ids }) => ids);
          const { feeds, starts } = packChunks(
            chunks,
            rows.map(({ past }) => past),
            multiple,
            c,
          );
          const [ids, positions, places, keys] = ['ids', 'positions', 'query_places', 'key_rows'].map(name =>
            numbers(feeds[name]),
          );
          const queries = numbers(feeds.query_rows);
          const longest = Math.max(...chunks.map(({ length }) => length));
          const t = feeds.key_rows.dims.at(-1)!;
          expect(t % multiple).toBe(0);
          expect(t - longest).toBeGreaterThanOrEqual(0);
          expect(t - longest).toBeLessThan(multiple);
          expect(feeds.new_mask).toEqual(causalMask(t));
          expect(ids.length).toBeGreaterThan(1); // a product of one row uses a different kernel
          rows.forEach(({ ids: own, past }, r) => {
            expect(ids.slice(starts[r], starts[r] + own.length)).toEqual(own);
            expect(positions.slice(starts[r], starts[r] + own.length)).toEqual(own.map((_, i) => past + i));
          });
          const all = new Set(queries);
          expectInverse(queries, places, ids.length * c.heads, all);
          const total = chunks.flat().length;
          for (let row = 0; row < total * c.heads; row++) expect(all.has(row)).toBe(true);
          const groups = c.heads / c.kvHeads;
          let place = 0;
          for (let r = 0; r < rows.length; r++)
            for (let k = 0; k < c.kvHeads; k++)
              for (let j = 0; j < groups; j++)
                for (let s = 0; s < t; s++, place++) {
                  const token = s < chunks[r].length ? starts[r] + s : total;
                  expect(queries[place]).toBe(token * c.heads + k * groups + j);
                  if (j === 0) expect(keys[(r * c.kvHeads + k) * t + s]).toBe(token * c.kvHeads + k);
                }
        },
      ),
      { numRuns: 40 },
    );
  });
});
