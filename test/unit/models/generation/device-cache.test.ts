// The key-value cache on a device against the one on the host: the same tokens, and log-probs equal up to rounding,
// over turns in which rows share prompts, enter and leave, wait for each other and cross window boundaries. Here both
// run on the CPU, where the device cache consists of arrays; the WebGPU tests repeat this on an adapter.
import { describe, expect, it } from 'vitest';
import type { SamplingOptions } from '../../../../extension/engine/generation-calls';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { windowSlots } from '../../../../extension/models/generation/device-batch';
import { goldenConfig, goldenWeights, plainSampling } from '../../../support/small-models';
import { playedApart, playedTurns } from '../../../support/played-turns';
import type { Turn } from '../../../support/played-turns';

const stream = new RandomStream(21);
const config = { ...goldenConfig('qwen2'), maxPositions: 512 };
const weights = goldenWeights('qwen2');
const ids = (n: number): number[] => Array.from({ length: n }, () => stream.integer(config.vocabSize));
const sampling: SamplingOptions = { ...plainSampling, max_new_tokens: 9, max_model_len: 500 };
const stops: SamplingOptions = { ...sampling, stop_token_ids: Array.from({ length: 12 }, (_, i) => 3 * i) };

async function expectAlike(turns: readonly Turn[], maxRows?: number): Promise<void> {
  const [host, device] = await Promise.all(
    (['host', 'device'] as const).map(cache => playedTurns(config, weights, { threads: 1, cache, maxRows }, turns)),
  );
  expect(device.map(row => ({ ...row, logprobs: [] }))).toEqual(host.map(row => ({ ...row, logprobs: [] })));
  host.forEach(({ logprobs }, i) =>
    logprobs.forEach((logprob, t) => expect(Math.abs(device[i].logprobs[t] - logprob)).toBeLessThan(1e-4)),
  );
}

describe('rows with a cache on a device', () => {
  it('draw the same tokens as those on the host, over turns in which they enter and leave', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const prompt = ids(17);
    const turns = Array.from({ length: 6 }, (_, turn): Turn => {
      const playing = names.filter((_, i) => turn === 0 || (turn + i) % 3 !== 0);
      const append = (i: number): number[] => (turn === 0 && i < 3 ? prompt : ids(1 + ((7 * turn + 11 * i) % 29)));
      return {
        append: Object.fromEntries(playing.map((name, i) => [name, append(i)])),
        sampling: { ...(turn % 2 === 0 ? stops : sampling), max_new_tokens: [9, 40, 1, 8, 70, 3][turn] },
        release: turn === 3 ? ['b'] : [],
      };
    });
    await expectAlike(turns);
  });

  it('join rows that are being decoded, with the same tokens and on the host the same bits', async () => {
    const names = Array.from({ length: 7 }, (_, i) => `r${i}`);
    const prompt = ids(12);
    const turns = Array.from({ length: 4 }, (_, turn): Turn => ({
      append: Object.fromEntries(
        names.map((name, i) => [name, turn === 0 && i < 3 ? prompt : ids(1 + ((5 * turn + 9 * i) % 23))]),
      ),
      sampling: { ...sampling, stop_token_ids: stops.stop_token_ids, max_new_tokens: 40 },
      release: turn === 2 ? ['r1', 'r4'] : [],
    }));
    const together = await playedTurns(config, weights, { threads: 1 }, turns);
    expect(new Set(together.map(row => row.ids.length)).size).toBeGreaterThan(5); // rows are answered at different times
    expect(await playedApart(config, weights, { threads: 1 }, turns)).toEqual(together);
    expect(await playedApart(config, weights, { threads: 1, maxRows: 3 }, turns)).toEqual(together);
    const device = await playedApart(config, weights, { threads: 1, cache: 'device' }, turns);
    expect(device.map(({ row, ids }) => [row, ids])).toEqual(together.map(({ row, ids }) => [row, ids]));
    together.forEach(({ logprobs }, i) =>
      logprobs.forEach((logprob, t) => expect(Math.abs(device[i].logprobs[t] - logprob)).toBeLessThan(1e-4)),
    );
  });

  it('wait for each other, and free their slots when they stop', async () => {
    const rows = (n: number): Record<string, number[]> =>
      Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`r${i}`, ids(n + i)]));
    const long = { ...stops, max_new_tokens: 50 };
    await expectAlike(
      [
        { append: rows(3), sampling: long },
        { append: rows(1), sampling: long },
      ],
      3,
    );
  });

  it.each([windowSlots - 1, windowSlots, windowSlots + 1, 2 * windowSlots, 2 * windowSlots + 1])(
    'cross the boundary of a window after %i tokens',
    async count => {
      const turn = (n: number): Turn => ({
        append: { a: ids(n), b: ids(2) },
        sampling: { ...sampling, max_new_tokens: count },
      });
      await expectAlike([turn(31), turn(1)]);
    },
  );

  it('support greedy decoding and top-k, top-p and min-p', async () => {
    const turn = (changed: Partial<SamplingOptions>): Turn => ({
      append: { a: ids(4), b: ids(9) },
      sampling: { ...sampling, ...changed },
    });
    await expectAlike([turn({ do_sample: false }), turn({ top_p: 0.8, repetition_penalty: 1.2 }), turn({ top_k: 5 })]);
  });

  it('may be a single row', async () => {
    const turn = (n: number): Turn => ({ append: { a: ids(n) }, sampling });
    await expectAlike([turn(1), turn(40), turn(1)]);
  });
});
