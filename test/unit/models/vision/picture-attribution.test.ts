// Attributions of pictures: the gradient of log-probs for image features equals PyTorch's and finite differences, the map
// of a picture in tiles keeps the sum of squares, and the engine's maps are those of what a sample shows.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withMarks } from '../../../../extension/common/picture-mark';
import type { LoadOptions } from '../../../../extension/engine/load-options';
import { float32 } from '../../../../extension/engine/session/session';
import { scoreGraph } from '../../../../extension/models/graphs/policy-graphs';
import { featureGradient } from '../../../../extension/models/feature-gradient';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { attributionMaps } from '../../../../extension/models/vision/picture-attribution';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { pictureName } from '../../../../extension/node/picture-store';
import { tensorsOf } from '../../../golden/tensors';
import { plainLoad, relativeError, wholeBatch } from '../../../support/small-models';
import { temporaryFolder } from '../../../support/temporary-folder';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';
import { encodeAll, goldenVision, runPass } from '../../../support/vision-models';

const folder = temporaryFolder();
const temperature = 0.7;
/** Number of tokens at the end of each golden conversation whose log-probs are summed. */
const scored = 8;

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'])('%s', family => {
  it.each([0, 1])('has the gradient of PyTorch and of finite differences: conversation %i', async row => {
    const golden = await goldenVision(family);
    const expected = tensorsOf(join('test/golden/vision', family, 'feature-gradients.safetensors'));
    const features = await encodeAll(golden);
    const { network, model, samples } = golden;
    const { ids, pictures } = samples[row];
    const sample = { ids, pictures, mask: new Uint8Array(ids.length).fill(1, ids.length - scored) };
    const options = { threads: 1 };
    const policy = { network, bank: new HostParameters(model.decoder, options) };
    const { logprob, gradient } = await featureGradient(policy, options, sample, wholeBatch, temperature, features);

    const all = expected.get(`gradient.${row}`)!;
    expect(logprob).toBeCloseTo(expected.get(`logprob.${row}`)!.data[0], 4);
    expect(relativeError(gradient.subarray(0, all.data.length), all.data)).toBeLessThan(1e-4);
    expect(gradient.subarray(all.data.length).every(x => x === 0)).toBe(true); // a picture that is not shown

    // Along the gradient, the log-prob changes by its squared norm.
    const step = 1e-2 / Math.hypot(...gradient);
    const at = async (by: number): Promise<number> => {
      const moved = (features.data as Float32Array).map((x, i) => x + by * (gradient[i] ?? 0));
      const pass = { shared: false, clusters: [{ members: [0], prefix: 0 }] };
      const { scattered } = await runPass(golden, scoreGraph, pass, [sample], float32(moved, [...features.dims]));
      return scattered('logprob')[0].reduce((sum, x) => sum + x, 0);
    };
    const slope = ((await at(step)) - (await at(-step))) / (2 * step);
    expect(slope / gradient.reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(1, 2);
  });
});

describe('maps', () => {
  const one = { rows: 1, columns: 2 };

  it('are the norm of gradient times feature, over all channels', () => {
    const layouts = [{ parts: [one], tiles: { rows: 0, columns: 0 } }];
    const maps = attributionMaps(layouts, Float32Array.of(1, 2, -3, 0), Float32Array.of(3, -2, 1, 9), 2);
    expect(maps).toEqual([{ rows: 1, columns: 2, values: Float32Array.of(5, 3) }]);
  });

  it('of tiles lie side by side, and each shares the map of the complete picture', () => {
    const square = { rows: 2, columns: 2 };
    const layouts = [
      { parts: [square, square, square], tiles: { rows: 1, columns: 2 } },
      { parts: [one], tiles: { rows: 0, columns: 0 } },
    ];
    const features = Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8, 4, 0, 0, 2, 9, 1);
    const [tiled, plain] = attributionMaps(layouts, features, new Float32Array(14).fill(1), 1);
    expect(tiled).toMatchObject({ rows: 2, columns: 4 });
    const expected = [
      [1, 2, 5, 6],
      [3, 4, 7, 8],
    ].flatMap((line, row) =>
      line.map((own, column) =>
        Math.sqrt(
          own ** 2 +
            [
              [4, 0],
              [0, 2],
            ][row][column >> 1] **
              2 /
              2,
        ),
      ),
    );
    expect([...tiled.values].map(x => x.toFixed(4))).toEqual(expected.map(x => x.toFixed(4)));
    const sum = (values: Float32Array): number => values.reduce((total, x) => total + x * x, 0);
    expect(sum(tiled.values)).toBeCloseTo(sum(features.subarray(0, 12)), 3);
    expect([...plain.values]).toEqual([9, 1]);
  });
});

/** A conversation that shows a picture twice, with another between. */
async function conversation(family: TinyVision, options: Partial<LoadOptions> = {}) {
  const modelFolder = await makeVisionModel(folder(), family);
  const store = join(folder(), 'pictures');
  mkdirSync(store, { recursive: true });
  const pictures = await Promise.all(
    ['board.png', 'odd.png', 'board.png'].map(async file => {
      const bytes = readFileSync(join('test/golden/vision/pictures', file));
      copyFileSync(join('test/golden/vision/pictures', file), join(store, pictureName(bytes)));
      const { width, height } = await decodePicture(bytes);
      return { name: pictureName(bytes), width, height };
    }),
  );
  const tokenizer = readTokenizer(modelFolder);
  const content = withMarks('Look: <image> then <image> and <image>.', pictures);
  const { ids, shows } = tokenizer.shownPrompt([{ role: 'user', content }], '');
  const all = Int32Array.from([...ids, 5, 6, 7, 8]);
  const sample = { ids: all, shows, mask: new Uint8Array(all.length).fill(1, ids.length) };
  const engine = new PolicyEngine();
  await engine.load({ ...plainLoad, modelFolder, pictures: { folder: store }, ...options });
  return { engine, sample, tokens: pictures.map(size => tokenizer.pictures!.tokens(size)) };
}

it.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'] as const)('the engine maps pictures: %s', async family => {
  const { engine, sample, tokens } = await conversation(family);
  const { logprobs } = await engine.score('actor', [sample], wholeBatch, temperature);
  const { logprob, pictures } = await engine.attributePictures(sample, wholeBatch, temperature);
  expect(logprob).toBeCloseTo(
    logprobs[0].reduce((sum, x) => sum + x, 0),
    4,
  );
  expect(pictures).toHaveLength(3);
  pictures.forEach(({ rows, columns, values }, i) => {
    expect(values).toHaveLength(rows * columns);
    if (family.startsWith('qwen')) expect(values).toHaveLength(tokens[i]);
    expect(values.every(x => Number.isFinite(x) && x >= 0)).toBe(true);
    expect(values.some(x => x > 0)).toBe(true);
  });
  // The same picture at another place has another map.
  expect(pictures[2].values).not.toEqual(pictures[0].values);
  const again = await engine.attributePictures(sample, wholeBatch, temperature);
  expect(again).toEqual({ logprob, pictures });

  // A token's log-prob does not depend on pictures after it.
  const before = { ...sample, mask: sample.mask.map((_, i) => Number(i === sample.shows[1].at - 1)) };
  const early = await engine.attributePictures(before, wholeBatch, temperature);
  expect(early.pictures.map(({ values }) => values.some(x => x > 0))).toEqual([true, false, false]);
});

it('adapters, in training with dropout, do not change the map', async () => {
  const lora = { rank: 2, alpha: 8, dropout: 0.5, targets: 'all-linear' };
  const { engine, sample } = await conversation('qwen3_vl', { lora, trainsEncoder: true });
  const { engine: plain } = await conversation('qwen3_vl');
  const [adapted, base] = await Promise.all(
    [engine, plain].map(each => each.attributePictures(sample, wholeBatch, temperature)),
  );
  expect(adapted).toEqual(base); // B is zero
});
