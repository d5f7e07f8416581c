// The KV cache on an adapter yields the same tokens as the cache on the host, and frees all its memory when all rows
// are released.
import { afterEach, expect, it, vi } from 'vitest';
import { describeWebgpu } from './adapter';
import { DeviceTensor } from '../../extension/engine/session/device-tensor';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { Session } from '../../extension/engine/session/session';
import { goldenConfig, goldenWeights, plainSampling } from '../support/small-models';
import { playedTurns } from '../support/played-turns';
import type { Turn } from '../support/played-turns';

const stream = new RandomStream(22);
const config = goldenConfig('qwen2');
const weights = goldenWeights('qwen2');
const ids = (n: number): number[] => Array.from({ length: n }, () => stream.integer(config.vocabSize));
const sampling = { ...plainSampling, stop_token_ids: Array.from({ length: 8 }, (_, i) => 4 * i), max_new_tokens: 40 };
const prompt = ids(11);
const turns: Turn[] = [
  { append: { a: prompt, b: prompt, c: ids(4), d: ids(1) }, sampling },
  { append: { b: ids(3), d: ids(9) }, sampling: { ...sampling, top_k: 8 } },
  { append: { a: ids(2), b: ids(1), e: ids(6) }, sampling: { ...sampling, do_sample: false }, release: ['c'] },
];

describeWebgpu('keys and values on WebGPU', () => {
  afterEach(() => void vi.restoreAllMocks());

  it.each([undefined, 2])('yield the same tokens as on the host, %s rows at a time', async maxRows => {
    const device = await playedTurns(config, weights, { provider: 'webgpu', threads: 1, maxRows }, turns);
    const host = await playedTurns(config, weights, { threads: 1, maxRows }, turns);
    expect(device.map(({ ids }) => ids)).toEqual(host.map(({ ids }) => ids));
    host.forEach(({ logprobs }, i) =>
      logprobs.forEach((logprob, t) => expect(Math.abs(device[i].logprobs[t] - logprob)).toBeLessThan(1e-4)),
    );
  });

  it('stay on the device: only sampled tokens are downloaded, and the last row frees all memory', async () => {
    const alive = new Set<DeviceTensor>();
    let down = 0;
    const { run } = Session.prototype;
    vi.spyOn(Session.prototype, 'run').mockImplementation(async function (this: Session, feeds) {
      const outputs = await run.call(this, feeds);
      for (const tensor of Object.values(outputs))
        if (tensor instanceof DeviceTensor) alive.add(tensor);
        else down = Math.max(down, tensor.data.byteLength);
      return outputs;
    });
    const { dispose } = DeviceTensor.prototype;
    vi.spyOn(DeviceTensor.prototype, 'dispose').mockImplementation(function (this: DeviceTensor) {
      alive.delete(this);
      dispose.call(this);
    });
    await playedTurns(config, weights, { provider: 'webgpu', threads: 1, maxRows: 3 }, [
      turns[0],
      { ...turns[2], sampling },
    ]);
    expect(alive.size).toBe(weights.specs.length); // the bank's parameters only
    expect(down).toBe(4 * 4); // one token or log-prob for each of four rows
  });
});
