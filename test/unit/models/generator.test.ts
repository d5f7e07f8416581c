// Generation against the scoring graph: what the cache says must be what a full forward pass says, over several turns, whatever
// the batch around a row; and greedy decoding must follow the scored argmax.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Generator } from '../../../extension/trainer/models/generator';
import { parameterSpecs, parseDecoderConfig } from '../../../extension/trainer/models/decoder-config';
import { Policy } from '../../../extension/trainer/models/policy';
import { Weights } from '../../../extension/trainer/models/weights';
import { RandomStream } from '../../../extension/trainer/engine/random-stream';
import { tensorsOf } from '../../golden/tensors';

describe.each(['qwen2', 'llama'])('%s', family => {
  const folder = join('test/golden', family);
  const config = parseDecoderConfig(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')), 'config.json');
  const weights = new Weights(parameterSpecs(config));
  for (const [name, { data }] of tensorsOf(join(folder, 'model.safetensors'))) weights.view(name).set(data);
  const sampling = { temperature: 0.8, top_p: 1, top_k: -1, do_sample: true, max_new_tokens: 9, stop_token_ids: [5, 6, 7], max_model_len: 60 };
  const stream = new RandomStream(3);
  const randomIds = (n: number): number[] => Array.from({ length: n }, () => 8 + stream.integer(50));
  const prompts = [randomIds(4), randomIds(9), randomIds(1), randomIds(4)];
  prompts.push(prompts[0]); // a shared prompt
  const later = prompts.map((_, i) => randomIds(1 + ((i * 3) % 5)));

  async function episodes(indices: number[]): Promise<Map<number, { ids: number[]; mask: number[]; logprobs: number[] }>> {
    const generator = new Generator(config, weights, { threads: 1 });
    const result = new Map(indices.map(i => [i, { ids: [] as number[], mask: [] as number[], logprobs: [] as number[] }]));
    for (const turn of [0, 1]) {
      const append = (i: number): number[] => (turn === 0 ? prompts[i] : later[i]);
      const rows = indices.map(i => ({ row: `r${i}`, append: append(i), seed: 100 * turn + i }));
      for (const [k, generated] of (await generator.generate(rows, sampling)).entries()) {
        const episode = result.get(indices[k])!;
        episode.ids.push(...append(indices[k]), ...generated.ids);
        episode.mask.push(...append(indices[k]).map(() => 0), ...generated.ids.map(() => 1));
        episode.logprobs.push(...append(indices[k]).map(() => 0), ...generated.logprobs);
        const stopped = sampling.stop_token_ids.includes(generated.ids.at(-1)!);
        expect(generated.finish).toBe(stopped ? 'stop' : 'length');
      }
    }
    return result;
  }

  it('reports the log-probs that the scoring graph computes, over two turns', async () => {
    const policy = new Policy(config, weights, { threads: 1 });
    for (const { ids, mask, logprobs } of (await episodes([0, 1, 2, 3, 4])).values()) {
      const { logprobs: scored } = await policy.score([{ ids: Int32Array.from(ids), mask: Uint8Array.from(mask) }], sampling.temperature);
      mask.forEach((on, i) => on && expect(logprobs[i]).toBeCloseTo(scored[0][i], 4));
    }
  });

  it('gives a row the same tokens whatever the batch around it', async () => {
    const together = await episodes([0, 1, 2, 3, 4]);
    for (const i of [0, 1, 2, 3, 4]) expect((await episodes([i])).get(i)!.ids).toEqual(together.get(i)!.ids);
  });

  it('ends a row at max_model_len', async () => {
    const generator = new Generator(config, weights, { threads: 1 });
    const options = { ...sampling, stop_token_ids: [], max_new_tokens: 50, max_model_len: 12 };
    const [row] = await generator.generate([{ row: 'a', append: prompts[0], seed: 1 }], options);
    expect(prompts[0].length + row.ids.length).toBe(12);
    expect(row.finish).toBe('length');
  });
});
