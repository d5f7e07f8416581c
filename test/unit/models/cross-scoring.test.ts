// Cross-scoring against the naive method: each pair of prompt and text scored as a separate sequence.
import { describe, expect, it } from 'vitest';
import type { PassBudget } from '../../../extension/engine/training-samples';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import { PackedSessions } from '../../../extension/models/graphs/packed-sessions';
import { CrossScoring } from '../../../extension/models/cross-scoring';
import { HostParameters } from '../../../extension/models/weights/parameter-bank';
import { Policy } from '../../../extension/models/policy';
import { trainedNetwork } from '../../../extension/models/decoder/networks';
import type { Session } from '../../../extension/engine/session/session';
import { goldenConfig, goldenWeights } from '../../support/small-models';
import { reinterpret } from '../../support/partial';

const options = { threads: 1 };
const roomy: PassBudget = { maxTokens: 4096, maxRows: 128 };

function opened(family: string, maxPositions?: number) {
  const config = goldenConfig(family);
  const bank = new HostParameters(goldenWeights(family), options);
  const network = { ...trainedNetwork(config), maxPositions };
  return { config, policy: new Policy(network, bank, options), scoring: new CrossScoring(network, bank, options) };
}

function texts(lengths: readonly number[], vocab: number, stream: RandomStream, prefix: readonly number[] = []) {
  return lengths.map(length => Int32Array.from([...prefix, ...Array.from({ length }, () => stream.integer(vocab))]));
}

/** Log-prob sums by scoring prompt + text, one pair per pass. */
async function naive(policy: Policy, prompts: Int32Array[], reasonings: Int32Array[], temperature: number) {
  const sums: number[][] = [];
  for (const z of reasonings) {
    const row: number[] = [];
    for (const x of prompts) {
      const sample = {
        ids: Int32Array.from([...x, ...z]),
        mask: new Uint8Array(x.length + z.length).fill(1, x.length),
      };
      const { logprobs } = await policy.score([sample], { maxTokens: Infinity, maxRows: 1 }, temperature);
      row.push(logprobs[0].reduce((sum, logprob) => sum + logprob, 0));
    }
    sums.push(row);
  }
  return sums;
}

function expectEqual(found: Float64Array[], expected: number[][], reasonings: Int32Array[]): void {
  expect(found.map(row => row.length)).toEqual(expected.map(row => row.length));
  found.forEach((row, i) =>
    row.forEach((sum, j) => expect(Math.abs(sum - expected[i][j]) / reasonings[i].length).toBeLessThan(1e-4)),
  );
}

describe('cross-scoring', () => {
  it.each(['qwen2', 'llama'])('equals scoring every pair: %s', async family => {
    const { config, policy, scoring } = opened(family);
    const stream = new RandomStream(3);
    const common = Array.from({ length: 9 }, () => stream.integer(config.vocabSize));
    const prompts = [
      ...texts([3, 11, 6], config.vocabSize, stream, common),
      ...texts([5, 1], config.vocabSize, stream),
    ];
    const reasonings = texts([4, 1, 7, 2, 7], config.vocabSize, stream);
    const expected = await naive(policy, prompts, reasonings, 0.7);
    expectEqual(await scoring.sums(prompts, reasonings, roomy, 0.7), expected, reasonings);
  });

  it.each<[string, PassBudget]>([
    ['few tokens', { maxTokens: 12, maxRows: 128 }],
    ['few rows', { maxTokens: 4096, maxRows: 3 }],
    ['next to nothing', { maxTokens: 1, maxRows: 1 }],
  ])('gives the same result however small a pass is: %s', async (_, budget) => {
    const { config, scoring } = opened('qwen2');
    const stream = new RandomStream(4);
    const prompts = texts([12, 5, 9], config.vocabSize, stream);
    const reasonings = texts([6, 3, 5, 1], config.vocabSize, stream);
    const expected = (await scoring.sums(prompts, reasonings, roomy, 1)).map(row => Array.from(row));
    expectEqual(await scoring.sums(prompts, reasonings, budget, 1), expected, reasonings);
  });

  it('continues a long prompt with a long text that never occurred in one episode', async () => {
    const { config, policy, scoring } = opened('qwen2', 16);
    const wide = opened('qwen2');
    const stream = new RandomStream(6);
    const prompts = texts([15, 4], config.vocabSize, stream);
    const reasonings = texts([14, 3], config.vocabSize, stream);
    await expect(naive(policy, prompts, reasonings, 1)).rejects.toThrow('out of range');
    expectEqual(
      await scoring.sums(prompts, reasonings, roomy, 1),
      await naive(wide.policy, prompts, reasonings, 1),
      reasonings,
    );
  });

  it('handles one prompt and one text of one token', async () => {
    const { policy, scoring } = opened('qwen2');
    const [prompts, reasonings] = [[Int32Array.of(5)], [Int32Array.of(7)]];
    expectEqual(
      await scoring.sums(prompts, reasonings, roomy, 1),
      await naive(policy, prompts, reasonings, 1),
      reasonings,
    );
  });

  it('computes every token once: prompts whatever the number of texts, and equal texts and prompts once', async () => {
    const { config, scoring } = opened('qwen2');
    const stream = new RandomStream(5);
    const [a, b] = texts([20, 16], config.vocabSize, stream);
    const [y, z] = texts([4, 3], config.vocabSize, stream);
    const computed = { prefixes: 0, suffixes: 0 };
    type Sessions = { get: (kind: string, ...rest: unknown[]) => Promise<Session> };
    for (const sessions of Object.values(reinterpret<Record<'sessions' | 'continuing', Sessions>>(scoring))) {
      if (!(sessions instanceof PackedSessions)) continue;
      const own = reinterpret<Sessions>(sessions);
      const get = own.get.bind(own);
      own.get = async (kind, ...rest) => {
        const session = await get(kind, ...rest);
        const run = session.run.bind(session);
        return Object.assign(Object.create(session) as Session, {
          run: (feeds: Parameters<Session['run']>[0]) => {
            // Not counting one padding token per pass.
            computed[kind.split(' ')[0] as keyof typeof computed] += feeds.ids.dims[0] - 1;
            return run(feeds);
          },
        });
      };
    }
    const sums = await scoring.sums([a, b, a], [y, z, z, y, y], roomy, 1);
    expect(computed).toEqual({ prefixes: 36, suffixes: 2 * 7 });
    expect(sums.map(row => Array.from(row))).toEqual([0, 1, 1, 0, 0].map(i => [0, 1, 0].map(j => sums[i][j])));
  });

  it('refuses a text without a token', async () => {
    const { scoring } = opened('qwen2');
    await expect(scoring.sums([Int32Array.of(1)], [new Int32Array(0)], roomy, 1)).rejects.toThrow(
      'needs at least one token',
    );
  });
});
