// Token distributions, checked against the log-prob of every vocabulary token at each position, computed one by one.
import { expect, it } from 'vitest';
import { inspectGraph } from '../../../extension/models/graphs/policy-graphs';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import { batchFeeds, chunkFeeds, scalarFeeds } from '../../../extension/models/graphs/batch-feeds';
import { PackedSessions } from '../../../extension/models/graphs/packed-sessions';
import { planPasses } from '../../../extension/models/graphs/pass-plan';
import { goldenConfig, goldenWeights, trainedPolicy, wholeBatch } from '../../support/small-models';

const config = goldenConfig('qwen2');
const stream = new RandomStream(3);
const samples = [9, 14, 5].map(length => ({
  ids: Int32Array.from({ length }, () => stream.integer(config.vocabSize)),
  mask: Uint8Array.from({ length }, (_, i) => Number(i > 2)),
}));

it('ranks, top tokens and entropy equal those of the full distribution', async () => {
  const policy = trainedPolicy(config, goldenWeights('qwen2'));
  const temperature = 0.7;
  const inspected = await policy.inspect(samples, wholeBatch, temperature, 5);
  const scored = await policy.score(samples, wholeBatch, temperature, undefined, { withSquares: true });
  expect((await policy.score(samples, wholeBatch, temperature)).squares).toBe(undefined);
  for (const [s, { ids, mask }] of samples.entries()) {
    expect(inspected[s].logprobs).toEqual(scored.logprobs[s]);
    expect(inspected[s].entropies).toEqual(scored.entropies[s]);
    const last = ids.length - 1;
    const others = Array.from({ length: config.vocabSize }, (_, id) => ({
      ids: Int32Array.from([...ids.subarray(0, last), id]),
      mask: Uint8Array.from(mask, (_, i) => Number(i === last)),
    }));
    const logprobs = (await policy.score(others, wholeBatch, temperature)).logprobs.map(row => row[last]);
    const order = [...logprobs.keys()].sort((a, b) => logprobs[b] - logprobs[a]);
    expect(inspected[s].ranks[last]).toBe(order.indexOf(ids[last]) + 1);
    expect(inspected[s].top.map(column => column.ids[last])).toEqual(order.slice(0, 5));
    inspected[s].top.forEach((column, k) => expect(column.logprobs[last]).toBeCloseTo(logprobs[order[k]], 4));
    const entropy = -logprobs.reduce((sum, x) => sum + x * Math.exp(x), 0);
    expect(inspected[s].entropies[last]).toBeCloseTo(entropy, 4);
    const squares = logprobs.reduce((sum, x) => sum + Math.exp(2 * x), 0);
    expect(scored.squares![s][last]).toBeCloseTo(squares, 5);
    expect(scored.squares![s][0]).toBe(0);
    expect(inspected[s].ranks[0]).toBe(0); // not requested
  }
});

it('results are the same with the output head in chunks', async () => {
  const { network, bank } = trainedPolicy(config, goldenWeights('qwen2'));
  const sessions = new PackedSessions(network, { threads: 1 }, false);
  const [pass] = planPasses(samples, wholeBatch, { token: 1, pass: 1e6 });
  const { feeds, trimmed, count } = batchFeeds(pass, samples, config);
  const run = async (chunks: number) => {
    const session = await sessions.get('inspect', { shared: pass.shared, trimmed, chunks }, (...of) =>
      inspectGraph(...of, 5),
    );
    const scalars = scalarFeeds({ inverse_temperature: 1 });
    const found = await session.run({ ...bank.feeds(), ...feeds, ...chunkFeeds(count, chunks), ...scalars });
    return Object.values(found).map(({ dims, data }) => ({ dims: [...dims], data: Array.from(data, Number) }));
  };
  const [whole, parts] = [await run(1), await run(4)];
  expect(parts.map(({ dims }) => dims)).toEqual(whole.map(({ dims }) => dims));
  parts.forEach(({ data }, i) => data.forEach((x, n) => expect(x).toBeCloseTo(whole[i].data[n], 4)));
});
