// Generation against the scoring graph: cached computation must equal a full forward pass, over several turns, whatever
// the batch around a row; and greedy decoding must follow the scored argmax.
import { describe, expect, it } from 'vitest';
import type { GeneratedRow, SamplingOptions } from '../../../../extension/engine/generation-calls';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import type { Generator } from '../../../../extension/models/generation/generator';
import type { GeneratorOptions } from '../../../../extension/models/generation/generator-options';
import { pieceTokens } from '../../../../extension/models/generation/host-cache';
import { Weights } from '../../../../extension/models/weights/weights';
import {
  goldenConfig,
  goldenWeights,
  playing,
  randomWeights,
  trainedPolicy,
  wholeBatch,
} from '../../../support/small-models';

/** Weights as session inputs, or laid out as constants; then another graph appends chunks. */
const layOuts = [{ layOut: false }, { layOut: true }];

describe.each(['qwen2', 'llama'].flatMap(family => layOuts.map(of => ({ family, ...of }))))(
  '$family, weights laid out: $layOut',
  ({ family, layOut }) => {
    const config = goldenConfig(family);
    const weights = goldenWeights(family);
    const sampling = {
      temperature: 0.8,
      top_p: 1,
      top_k: -1,
      do_sample: true,
      max_new_tokens: 9,
      min_p: 0,
      repetition_penalty: 1,
      stop: [],
      stop_token_ids: [5, 6, 7],
      max_model_len: 60,
    };
    const stream = new RandomStream(3);
    const randomIds = (n: number): number[] => Array.from({ length: n }, () => 8 + stream.integer(50));
    const prompts = [randomIds(4), randomIds(9), randomIds(1), randomIds(4)];
    prompts.push(prompts[0]); // a shared prompt
    const later = prompts.map((_, i) => randomIds(1 + ((i * 3) % 5)));

    async function episodes(
      indices: number[],
      options: Partial<GeneratorOptions> = {},
    ): Promise<Map<number, { ids: number[]; mask: number[]; logprobs: number[] }>> {
      const generator = playing(config, weights, { threads: 1, layOut, ...options });
      const result = new Map(
        indices.map(i => [i, { ids: [] as number[], mask: [] as number[], logprobs: [] as number[] }]),
      );
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
      const policy = trainedPolicy(config, weights);
      for (const { ids, mask, logprobs } of (await episodes([0, 1, 2, 3, 4])).values()) {
        const { logprobs: scored } = await policy.score(
          [{ ids: Int32Array.from(ids), mask: Uint8Array.from(mask) }],
          wholeBatch,
          sampling.temperature,
        );
        mask.forEach((on, i) => on && expect(logprobs[i]).toBeCloseTo(scored[0][i], 4));
      }
    });

    it('gives a row the same tokens and the same bits of their log-probs in any batch', async () => {
      const together = await episodes([0, 1, 2, 3, 4]);
      for (const alone of [[0], [1], [2], [3], [4], [2, 1], [4, 3, 0]])
        for (const [i, episode] of await episodes(alone)) expect(episode).toEqual(together.get(i));
    });

    it('gives a row the same bits when rows wait for each other', async () => {
      const together = await episodes([0, 1, 2, 3, 4]);
      expect(await episodes([0, 1, 2, 3, 4], { maxRows: 2 })).toEqual(together);
    });

    it('ends a row at max_model_len', async () => {
      const generator = playing(config, weights, { threads: 1, layOut });
      const options = { ...sampling, stop_token_ids: [], max_new_tokens: 50, max_model_len: 12 };
      const [row] = await generator.generate([{ row: 'a', append: prompts[0], seed: 1 }], options);
      expect(prompts[0].length + row.ids.length).toBe(12);
      expect(row.finish).toBe('length');
    });

    it('decodes greedily the most likely token of a full forward pass, token by token', async () => {
      const generator = playing(config, weights, { threads: 1, layOut });
      const policy = trainedPolicy(config, weights);
      const options = { ...sampling, do_sample: false, stop_token_ids: [], max_new_tokens: 6, temperature: 1 };
      const [row] = await generator.generate([{ row: 'a', append: prompts[1], seed: 1 }], options);
      const ids = [...prompts[1]];
      for (const [i, token] of row.ids.entries()) {
        const every = Array.from({ length: config.vocabSize }, (_, candidate) => ({
          ids: Int32Array.from([...ids, candidate]),
          mask: Uint8Array.from([...ids.map(() => 0), 1]),
        }));
        const logprobs = (await policy.score(every, wholeBatch, 1)).logprobs.map(scored => scored.at(-1)!);
        expect(logprobs.indexOf(Math.max(...logprobs))).toBe(token);
        expect(row.logprobs[i]).toBeCloseTo(logprobs[token], 4);
        ids.push(token);
      }
    });
  },
);

// The layers are so narrow that onnxruntime's matmul with two threads rounds by the number of rows (even-products.ts).
it.each(layOuts)(
  'gives a row the same bits in any batch with two threads, weights laid out: $layOut',
  async ({ layOut }) => {
    const config = {
      ...goldenConfig('qwen2'),
      hiddenSize: 96,
      intermediateSize: 256,
      heads: 4,
      kvHeads: 2,
      headSize: 24,
    };
    const weights = randomWeights(config, 4);
    const stream = new RandomStream(9);
    const prompts = Array.from({ length: 24 }, () => Array.from({ length: 40 }, () => 8 + stream.integer(50)));
    const sampled = async (rows: readonly number[]): Promise<GeneratedRow[]> =>
      playing(config, weights, { threads: 2, layOut }).generate(
        rows.map(i => ({ row: `r${i}`, append: prompts[i], seed: i })),
        {
          ...{ temperature: 1, top_p: 1, top_k: -1, do_sample: true, max_new_tokens: 6, min_p: 0 },
          ...{ repetition_penalty: 1, stop: [], stop_token_ids: [], max_model_len: 64 },
        },
      );
    const together = await sampled([...prompts.keys()]);
    for (const rows of [[3], [5, 6], [0, 8, 16], [...prompts.keys()].slice(11)])
      expect(await sampled(rows)).toEqual(rows.map(i => together[i]));
  },
);

describe.each(layOuts)('rows, weights laid out: $layOut', ({ layOut }) => {
  const config = { ...goldenConfig('qwen2'), maxPositions: 2048 };
  const weights = goldenWeights('qwen2');
  const plain: SamplingOptions = {
    temperature: 1,
    top_p: 1,
    top_k: -1,
    do_sample: true,
    max_new_tokens: 8,
    min_p: 0,
    repetition_penalty: 1,
    stop: [],
    stop_token_ids: [],
    max_model_len: 500,
  };
  const stream = new RandomStream(6);
  const randomIds = (n: number): number[] => Array.from({ length: n }, () => stream.integer(config.vocabSize));

  class Episodes {
    readonly generator = playing(config, weights, { threads: 1, layOut });
    private readonly histories = new Map<string, { ids: number[]; mask: number[]; logprobs: number[] }>();

    async turn(appended: Record<string, number[]>, options: SamplingOptions, seed: number): Promise<GeneratedRow[]> {
      const requests = Object.entries(appended).map(([row, append], i) => ({ row, append, seed: seed * 1000 + i }));
      const rows = await this.generator.generate(requests, options);
      for (const { row, ids, logprobs } of rows) {
        let history = this.histories.get(row);
        if (!history) this.histories.set(row, (history = { ids: [], mask: [], logprobs: [] }));
        const append = appended[row];
        history.ids.push(...append, ...ids);
        history.mask.push(...append.map(() => 0), ...ids.map(() => 1));
        history.logprobs.push(...append.map(() => 0), ...logprobs);
      }
      return rows;
    }

    /** Asserts that every reported log-prob equals the score of the whole sequence. */
    async expectScored(): Promise<void> {
      const histories = [...this.histories.values()];
      const samples = histories.map(({ ids, mask }) => ({ ids: Int32Array.from(ids), mask: Uint8Array.from(mask) }));
      const { logprobs } = await trainedPolicy(config, weights).score(samples, wholeBatch, 1);
      histories.forEach(({ mask, logprobs: reported }, r) =>
        mask.forEach(
          (on, i) => on && expect(Math.abs(reported[i] - logprobs[r][i]), `row ${r}, token ${i}`).toBeLessThan(5e-4),
        ),
      );
    }
  }

  it('keep their cache over many turns of many lengths, across block boundaries', async () => {
    const episodes = new Episodes();
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (let turn = 0; turn < 7; turn++) {
      const playing = names.filter((_, i) => turn === 0 || (turn + i) % 3 !== 0); // rows enter and leave between turns
      const appended = Object.fromEntries(playing.map((name, i) => [name, randomIds(1 + ((7 * turn + 11 * i) % 29))]));
      await episodes.turn(appended, { ...plain, max_new_tokens: [5, 40, 1, 8, 33, 2, 12][turn] }, turn);
    }
    await episodes.expectScored();
  });

  it.each([30, 31, 32, 33, 63, 64, 65])('cross a block boundary right after a prompt of %i tokens', async length => {
    const episodes = new Episodes();
    await episodes.turn({ a: randomIds(length), b: randomIds(3) }, { ...plain, max_new_tokens: 3 }, 1);
    await episodes.turn({ a: randomIds(1), b: randomIds(length) }, { ...plain, max_new_tokens: 2 }, 2);
    await episodes.expectScored();
  });

  it('that share a prompt draw separate tokens, and later turns do not mix', async () => {
    const episodes = new Episodes();
    const prompt = randomIds(40);
    const group = Object.fromEntries(['a', 'b', 'c', 'd'].map(name => [name, prompt]));
    const rows = await episodes.turn(group, plain, 1);
    expect(new Set(rows.map(({ ids }) => ids.join())).size).toBe(4);
    const observation = randomIds(5);
    await episodes.turn(Object.fromEntries(Object.keys(group).map(name => [name, observation])), plain, 2);
    await episodes.expectScored();
  });

  it('draw the same tokens for the same seed, and others for another', async () => {
    const prompt = randomIds(6);
    const draw = async (seed: number): Promise<number[]> =>
      (await new Episodes().turn({ a: prompt }, { ...plain, max_new_tokens: 20 }, seed))[0].ids;
    expect(await draw(1)).toEqual(await draw(1));
    expect(await draw(1)).not.toEqual(await draw(2));
  });

  it('draw at most max_new_tokens per turn, and end with a stop token that belongs to them', async () => {
    const episodes = new Episodes();
    const [row] = await episodes.turn({ a: randomIds(3) }, { ...plain, max_new_tokens: 5 }, 1);
    expect(row).toMatchObject({ finish: 'length', ids: { length: 5 } });
    const everyId = Array.from({ length: config.vocabSize }, (_, id) => id);
    const [stopped] = await episodes.turn({ a: randomIds(2) }, { ...plain, stop_token_ids: everyId }, 2);
    expect(stopped).toMatchObject({ finish: 'stop', ids: { length: 1 } });
    await episodes.turn({ a: randomIds(2) }, plain, 3);
    await episodes.expectScored();
  });

  it('count the whole sequence for max_model_len, earlier turns and prompts included', async () => {
    const episodes = new Episodes();
    await episodes.turn({ a: randomIds(10) }, { ...plain, max_new_tokens: 5 }, 1);
    const [row] = await episodes.turn({ a: randomIds(4) }, { ...plain, max_new_tokens: 50, max_model_len: 24 }, 2);
    expect(row).toMatchObject({ finish: 'length', ids: { length: 5 } });
  });

  it('start again after a release, also with new weights', async () => {
    const moving = new Weights(weights.specs, weights.flat.slice());
    const generator = playing(config, moving);
    const prompt = randomIds(12);
    const draw = async (of: Generator): Promise<GeneratedRow> =>
      (await of.generate([{ row: 'a', append: prompt, seed: 3 }], plain))[0];
    const first = await draw(generator);
    await generator.release(['a']);
    expect(await draw(generator)).toEqual(first);
    await generator.release(['a', 'never seen']);
    moving.flat.set(randomWeights(config, 2).flat);
    const after = await draw(generator);
    expect(after.ids).not.toEqual(first.ids);
    expect(after).toEqual(await draw(playing(config, moving)));
  });

  it('are all prefilled when their prompts do not fit into one call', async () => {
    const episodes = new Episodes();
    const appended = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`r${i}`, randomIds(150 - i)]));
    const rows = await episodes.turn(appended, { ...plain, max_new_tokens: 2 }, 1);
    expect(rows.map(({ row }) => row)).toEqual(Object.keys(appended));
    await episodes.expectScored();
  });

  it.each([0, 1])(
    'read long prompts in pieces, %i tokens beyond a whole number of them, equal to the bit to reading them alone',
    async more => {
      const options = { ...plain, max_new_tokens: 3, max_model_len: 2000 };
      const prompts = { a: randomIds(2 * pieceTokens + more), b: randomIds(7), c: randomIds(pieceTokens - 1 + more) };
      const episodes = new Episodes();
      await episodes.turn(prompts, options, 1);
      await episodes.turn({ a: randomIds(pieceTokens + 5), b: [3], c: [4] }, options, 2);
      await episodes.expectScored();
      const [first] = await new Episodes().turn({ a: prompts.a }, options, 1);
      const [again] = await new Episodes().turn(prompts, options, 1);
      expect(first).toEqual(again);
    },
  );

  it('apply the requested top-k, top-p and min-p', async () => {
    const prompt = randomIds(30);
    const draw = async (cuts: Partial<SamplingOptions>): Promise<GeneratedRow> =>
      (await new Episodes().turn({ a: prompt }, { ...plain, max_new_tokens: 30, ...cuts }, 1))[0];
    const greedy = await draw({ do_sample: false });
    for (const cuts of [{ top_k: 1 }, { top_p: 1e-6 }, { min_p: 1 }])
      expect(await draw(cuts)).toMatchObject({ ids: greedy.ids });
    const penalised = await draw({ do_sample: false, repetition_penalty: 1e6 });
    const fresh = penalised.ids.filter((id, i) => !prompt.includes(id) && penalised.ids.indexOf(id) === i);
    expect(fresh.length).toBeGreaterThan(greedy.ids.length / 2);
  });

  it('end with the token that completes a stop string', async () => {
    const generator = playing(config, weights, { threads: 1, decode: ids => ids.map(id => `<${id}>`).join('') });
    const request = { row: 'a', append: randomIds(5), seed: 4 };
    const options = { ...plain, max_new_tokens: 12 };
    const [whole] = await generator.generate([request], options);
    await generator.release(['a']);
    const stop = [`${whole.ids[3]}><${whole.ids[4]}`, 'never'];
    const [stopped] = await generator.generate([request], { ...options, stop });
    expect(stopped).toMatchObject({ ids: whole.ids.slice(0, 5), finish: 'stop' });
  });

  it('require tokens to append', async () => {
    await expect(new Episodes().turn({ a: [] }, plain, 1)).rejects.toThrow('generator: row a has nothing to append');
  });

  it('are answered per call, short calls before long ones; their release waits, and so do calls with other sampling options', async () => {
    const generator = playing(config, weights, { threads: 1, layOut });
    const stops = { ...plain, max_new_tokens: 40, stop_token_ids: [1, 5, 9, 13, 17, 21] };
    const order: { row: string; length: number }[] = [];
    const call = async (row: string, options: SamplingOptions) => {
      const [{ ids }] = await generator.generate(
        [{ row, append: randomIds(4), seed: order.length + row.length }],
        options,
      );
      order.push({ row, length: ids.length });
    };
    const calls = ['a', 'bb', 'ccc', 'dddd', 'eeeee', 'ffffff'].map(row => call(row, stops));
    const released = generator.release(['a']).then(() => expect(order.map(({ row }) => row)).toContain('a'));
    await Promise.all([...calls, call('other', plain), released]);
    const lengths = order.slice(0, -1).map(({ length }) => length);
    expect(lengths).toEqual(lengths.toSorted((a, b) => a - b));
    expect(new Set(lengths).size).toBeGreaterThan(2);
    expect(order.at(-1)).toEqual({ row: 'other', length: plain.max_new_tokens });
  });

  it('fail together, and generation continues', async () => {
    const generator = playing(config, weights, { threads: 1, layOut });
    const call = (row: string, append: number[]) => generator.generate([{ row, append, seed: 3 }], plain);
    const ends = await Promise.allSettled([call('a', randomIds(4)), call('b', []), call('c', randomIds(3))]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect((await call('d', randomIds(4)))[0].ids).toHaveLength(plain.max_new_tokens);
  });

  it('report how many tokens were sampled', async () => {
    const generator = playing(config, weights, { threads: 1, layOut });
    const received: number[] = [];
    const requests = ['a', 'b'].map((row, i) => ({ row, append: randomIds(3), seed: i }));
    const rows = await generator.generate(requests, { ...plain, max_new_tokens: 70 }, sampled =>
      received.push(sampled),
    );
    expect(received.at(-1)).toBe(rows.reduce((n, { ids }) => n + ids.length, 0));
    expect(received.every((n, i) => i === 0 || n > received[i - 1])).toBe(true);
    expect(received.length).toBeGreaterThan(1);
  });
});
