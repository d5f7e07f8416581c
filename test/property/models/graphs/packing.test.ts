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
import type { Pass } from '../../../../extension/models/graphs/pass-plan';
import { batch, budget, groupedConfig as config } from './batches';

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
      fc.property(batch, budget, (samples, { maxTokens, maxRows }) => {
        const passes = planPasses(samples, { maxTokens, maxRows });
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
      fc.property(batch, budget, (samples, limits) => {
        for (const { shared, clusters } of planPasses(samples, limits))
          for (const { members, prefix } of clusters) {
            expect(prefix > 0).toBe(shared);
            expect(members.length > 1).toBe(shared);
            const [first] = members;
            for (const member of members) {
              expect(prefix).toBeLessThanOrEqual(samples[member].ids.length - 1);
              expect(samples[member].ids.slice(0, prefix)).toEqual(samples[first].ids.slice(0, prefix));
            }
          }
      }),
    );
  });

  it('depend on the samples only', () => {
    fc.assert(
      fc.property(batch, budget, (samples, limits) => {
        const copies = samples.map(({ ids }) => ({ ids: ids.slice() }));
        expect(planPasses(copies, limits)).toEqual(planPasses(samples, limits));
      }),
    );
  });

  it('share as many prefix tokens as neighbours in the order of their ids allow', () => {
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
          const passes = planPasses(samples, { maxTokens: Infinity, maxRows });
          const planned = passes.reduce((sum, pass) => sum + packedTokens(pass, samples), 0);
          const all = samples.reduce((sum, { ids }) => sum + ids.length, 0);
          expect(all - planned).toBe(most(0));
        },
      ),
    );
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
      fc.property(batch, budget, grouped, (samples, limits, heads) => {
        for (const pass of planPasses(samples, limits)) {
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
      fc.property(batch, budget, grouped, (samples, limits, c) => {
        for (const pass of planPasses(samples, limits)) {
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
            const rows = Math.max(...clusters.map(({ members }) => members.length));
            const u = Math.max(...clusters.map(({ prefix }) => prefix));
            const t = Math.max(
              2,
              ...clusters.flatMap(({ members, prefix }) => members.map(i => samples[i].ids.length - prefix)),
            );
            const firsts = clusters.map((_, p) =>
              clusters.slice(0, p).reduce((n, { members }) => n + members.length, 0),
            );
            const block = (lines: ((s: number) => number)[], length: number): void => {
              for (let k = 0; k < c.kvHeads; k++)
                for (const line of lines)
                  for (let j = 0; j < groups; j++)
                    for (let s = 0; s < length; s++) expected.push(line(s) * heads + k * groups + j);
            };
            if (pass.shared)
              clusters.forEach(({ prefix }, p) => block([s => (s < prefix ? at(firsts[p], s) : standIn)], u));
            clusters.forEach(({ members, prefix }, p) => {
              const line = (m: number) => (s: number) =>
                m < members.length && s < samples[members[m]].ids.length - prefix
                  ? at(firsts[p] + m, prefix + s)
                  : standIn;
              block(
                Array.from({ length: rows }, (_, m) => line(m)),
                t,
              );
            });
            expect(forward).toEqual(expected);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it('lets tokens attend to their own row up to themselves, and to the real tokens of the prefix', () => {
    fc.assert(
      fc.property(batch, budget, (samples, limits) => {
        for (const pass of planPasses(samples, limits)) {
          const { feeds } = packPass(pass, samples, config);
          const t = feeds.key_rows.dims.at(-1)!;
          const u = pass.shared ? feeds.key_prefixes.dims.at(-1)! : 0;
          const early = Math.ceil(t / 2);
          expect(t).toBeGreaterThan(1);
          if (pass.shared) expect(feeds.prefixes_mask).toEqual(causalMask(u));
          for (const [name, from, to] of [
            ['early_mask', 0, early],
            ['late_mask', early, t],
          ] as const) {
            const expected: number[] = [];
            for (const { prefix } of pass.shared ? pass.clusters : [{ prefix: 0 }])
              for (let i = from; i < to; i++)
                for (let k = 0; k < u + to; k++) expected.push((k < u ? k < prefix : k - u <= i) ? 0 : masked);
            expect(feeds[name].dims).toEqual(
              pass.shared ? [pass.clusters.length, 1, 1, 1, to - from, u + to] : [to - from, to],
            );
            expect(numbers(feeds[name])).toEqual(expected.map(Math.fround));
          }
        }
      }),
    );
  });
});

describe('maps between samples and packed tokens', () => {
  it('read a masked token at the position that predicts it, and return every array to its sample', () => {
    fc.assert(
      fc.property(batch, budget, fc.integer(), (plain, limits, seed) => {
        const stream = new RandomStream(seed);
        const samples = plain.map(({ ids }) => ({
          ids,
          mask: Uint8Array.from(ids, () => stream.integer(2)),
          values: Float32Array.from(ids, () => stream.normal()),
        }));
        const found: Float32Array[] = [];
        for (const pass of planPasses(samples, limits)) {
          const { feeds, count, gather, scatter } = batchFeeds(pass, samples, config);
          const [ids, positions, rows, targets] = ['ids', 'positions', 'rows', 'targets'].map(name =>
            numbers(feeds[name]),
          );
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
