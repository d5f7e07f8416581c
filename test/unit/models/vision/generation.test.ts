// Generation with pictures against transformers (test/golden/make/vision_models.py): greedy tokens and their log-probs
// in a conversation of three turns, which keeps its cache, with a picture in the first two turns.
import { describe, expect, it } from 'vitest';
import type { GenerationRow, PicturedTokens, SamplingOptions } from '../../../../extension/engine/generation-calls';
import { Generator } from '../../../../extension/models/generation/generator';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { relativeError } from '../../../support/small-models';
import { encodeAll, goldenVision } from '../../../support/vision-models';

const greedy: SamplingOptions = {
  temperature: 1,
  do_sample: false,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  max_new_tokens: 4,
  stop_token_ids: [],
  stop: [],
  max_model_len: 1000,
};

/** What the last `count` tokens show. */
function tail({ features, positions, values }: PicturedTokens, count: number): PicturedTokens {
  const n = features.length;
  const axes = [1, 2, 3].flatMap(end => [...positions.subarray(end * n - count, end * n)]);
  return { values, features: features.subarray(n - count), positions: Int32Array.from(axes) };
}

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'])('%s', family => {
  it.each([false, true])('generates the tokens of transformers, laid out %s', async layOut => {
    const golden = await goldenVision(family);
    const values = (await encodeAll(golden)).data as Float32Array;
    const bank = new HostParameters(golden.model.decoder, { threads: 1 });
    const generator = new Generator(golden.network, bank, { threads: 1, layOut });
    const ids: number[] = [];
    const seen: number[] = [];
    for (const [turn, { append, pictures, tokens, logprobs }] of golden.turns.entries()) {
      ids.push(...append);
      seen.push(...pictures);
      const shown = { ...golden.showing(ids, seen), values };
      const rows = ['a', 'b'].map((row): GenerationRow => ({
        row,
        append,
        seed: 1,
        pictures: pictures.length > 0 ? tail(shown, append.length) : undefined,
      }));
      for (const found of await generator.generate(rows, greedy)) {
        expect(found.ids, `turn ${turn}`).toEqual(tokens);
        expect(relativeError(found.logprobs, logprobs), `turn ${turn}`).toBeLessThan(1e-4);
      }
      ids.push(...tokens);
    }
  });

  it('generates other tokens for another picture with equal ids', async () => {
    const golden = await goldenVision(family);
    const values = (await encodeAll(golden)).data as Float32Array;
    const bank = new HostParameters(golden.model.decoder, { threads: 1 });
    const generator = new Generator(golden.network, bank, { threads: 1, layOut: true });
    const [{ append, pictures, tokens }] = golden.turns;
    const shown = golden.showing(append, pictures);
    const of = (row: string, seenValues: Float32Array): GenerationRow => ({
      row,
      append,
      seed: 1,
      pictures: { ...shown, values: seenValues },
    });
    const rows = [
      of('a', values),
      of(
        'b',
        values.map(x => -x),
      ),
    ];
    const [first, second] = await generator.generate(rows, greedy);
    expect(first.ids).toEqual(tokens);
    expect(second.ids).not.toEqual(tokens);
  });
});
