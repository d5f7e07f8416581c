// A watched row: its reports are its sampled tokens, from the first token of a turn on, and watching does not change
// the sampling.
import { expect, it } from 'vitest';
import { goldenConfig, goldenWeights, playing } from '../../../support/small-models';

const sampling = {
  ...{ temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, do_sample: true },
  ...{ max_new_tokens: 12, stop_token_ids: [5], stop: [], max_model_len: 60 },
};
const rows = [0, 1, 2].map(i => ({ row: `r${i}`, append: [8, 9, 10 + i], seed: i }));

it('is reported in order, also to a late subscriber', async () => {
  const alone = await playing(goldenConfig('qwen2'), goldenWeights('qwen2'), { threads: 1 }).generate(rows, sampling);
  const generator = playing(goldenConfig('qwen2'), goldenWeights('qwen2'), { threads: 1 });
  const received = { r1: { ids: [] as number[], logprobs: [] as number[] }, r2: { ids: [] as number[], calls: 0 } };
  generator.watch({
    row: 'r1',
    onTokens(ids, logprobs) {
      received.r1.ids.push(...ids);
      received.r1.logprobs.push(...logprobs);
      if (received.r1.ids.length !== 4) return;
      generator.watch({ row: 'r2', onTokens: late => (received.r2.ids.push(...late), received.r2.calls++) });
    },
  });
  const watched = await generator.generate(rows, sampling);
  expect(watched).toEqual(alone);
  expect(received.r1.ids).toEqual(alone[1].ids.slice(0, 4));
  expect(received.r1.logprobs).toEqual(alone[1].logprobs.slice(0, 4));
  expect(received.r2.ids).toEqual(alone[2].ids);
  expect(received.r2.calls).toBe(1 + alone[2].ids.length - 4); // the tokens so far, then one call per token

  generator.watch(null);
  const before = received.r2.ids.length;
  await generator.generate([{ row: 'r2', append: [11], seed: 9 }], sampling);
  expect(received.r2.ids).toHaveLength(before);
});
