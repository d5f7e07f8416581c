// The engine with pictures by name: what the generator sampled, what is scored and what cross-scoring sums agree, with
// and without a cache of the conversation; a picture that is not stored is reported by its file.
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { withMarks, type MarkedPicture } from '../../../../extension/common/picture-mark';
import type { ShownIds } from '../../../../extension/engine/training-samples';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { decodePicture } from '../../../../extension/models/vision/picture-decoder';
import { PictureEncoder } from '../../../../extension/models/vision/picture-encoder';
import { pictureName } from '../../../../extension/node/picture-store';
import { temporaryFolder } from '../../../support/temporary-folder';
import { plainLoad, plainSampling, relativeError, wholeBatch } from '../../../support/small-models';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';

const folder = temporaryFolder();
const files = ['board.png', 'odd.png', 'jpeg.jpg'].map(name => join('test/golden/vision/pictures', name));
let pictures: MarkedPicture[] = [];

beforeAll(async () => {
  pictures = await Promise.all(
    files.map(async file => {
      const bytes = readFileSync(file);
      const { width, height } = await decodePicture(bytes);
      return { name: pictureName(bytes), width, height };
    }),
  );
});

async function opened(family: TinyVision) {
  const modelFolder = await makeVisionModel(folder(), family);
  const store = join(folder(), 'pictures');
  mkdirSync(store);
  files.forEach((file, i) => copyFileSync(file, join(store, pictures[i].name)));
  const engine = new PolicyEngine();
  await engine.load({ ...plainLoad, modelFolder, pictures: { folder: store }, maxPositions: null });
  return { engine, tokenizer: readTokenizer(modelFolder) };
}

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3'] as const)('%s', family => {
  it('samples, scores and cross-scores tokens after the same pictures', async () => {
    const { engine, tokenizer } = await opened(family);
    const text = withMarks('Look: <image> then <image>.', pictures);
    const first: ShownIds = tokenizer.shownPrompt([{ role: 'user', content: text }], '');
    expect(first.shows.map(({ picture }) => picture)).toEqual(pictures.slice(0, 2).map(({ name }) => name));
    const sampling = { ...plainSampling, max_new_tokens: 5, max_model_len: 1000 };
    const [answer] = await engine.generate([{ row: 'a', append: first.ids, shows: first.shows, seed: 3 }], sampling);
    const next = tokenizer.shownContinuation(answer.ids, withMarks('Now <image>', pictures.slice(2)), '');
    const [second] = await engine.generate([{ row: 'a', append: next.ids, shows: next.shows, seed: 4 }], sampling);

    const before = [...first.ids, ...answer.ids];
    const prompt = [...before, ...next.ids];
    const shows = [...first.shows, ...next.shows.map(({ at, picture }) => ({ at: at + before.length, picture }))];
    const ids = Int32Array.from([...prompt, ...second.ids]);
    const mask = new Uint8Array(ids.length).fill(1, prompt.length);
    mask.fill(1, first.ids.length, before.length);
    const { logprobs } = await engine.score('actor', [{ ids, mask, shows }], wholeBatch, 1);
    const scored = [...logprobs[0].filter((_, i) => mask[i] === 1)];
    expect(relativeError(scored, [...answer.logprobs, ...second.logprobs])).toBeLessThan(1e-4);

    const texts = [Int32Array.from(second.ids)];
    const sums = await engine.crossScore([Int32Array.from(prompt), Int32Array.from(first.ids)], texts, wholeBatch, 1, [
      shows,
      first.shows,
    ]);
    const expected = second.logprobs.reduce((sum, x) => sum + x, 0);
    expect(Math.abs(sums[0][0] - expected)).toBeLessThan(1e-3);
    expect(Math.abs(sums[0][1] - expected)).toBeGreaterThan(1e-3);
  });

  it('encodes each picture once for all calls', async () => {
    const encoded = vi.spyOn(PictureEncoder.prototype, 'features');
    const { engine, tokenizer } = await opened(family);
    const rows = [[0, 1], [1], [0]].map((shown, i) => {
      const text = withMarks(
        '<image>'.repeat(shown.length),
        shown.map(index => pictures[index]),
      );
      const { ids, shows } = tokenizer.shownPrompt([{ role: 'user', content: text }], '');
      return { row: String(i), append: ids, shows, seed: i };
    });
    const answers = await engine.generate(rows, { ...plainSampling, max_new_tokens: 2, max_model_len: 1000 });
    const samples = rows.map(({ append, shows }, i) => {
      const ids = Int32Array.from([...append, ...answers[i].ids]);
      return { ids, shows, mask: new Uint8Array(ids.length).fill(1, append.length) };
    });
    await engine.score('actor', samples, wholeBatch, 1);
    await engine.inspect(samples, wholeBatch, 1, 2);
    const prompts = rows.map(({ append }) => Int32Array.from(append));
    const texts = answers.map(({ ids }) => Int32Array.from(ids));
    await engine.crossScore(
      prompts,
      texts,
      wholeBatch,
      1,
      rows.map(({ shows }) => shows),
    );
    expect(encoded).toHaveBeenCalledTimes(2);
    encoded.mockRestore();
  });

  it('names the file of a picture that is not stored', async () => {
    const { engine, tokenizer } = await opened(family);
    const lost = { ...pictures[0], name: `${'0'.repeat(64)}.png` };
    const { ids, shows } = tokenizer.shownPrompt([{ role: 'user', content: withMarks('<image>', [lost]) }], '');
    const mask = new Uint8Array(ids.length).fill(1, 1);
    await expect(engine.score('actor', [{ ids: Int32Array.from(ids), mask, shows }], wholeBatch, 1)).rejects.toThrow(
      /the picture .*0{64}\.png cannot be read/,
    );
  });
});

it('frees a row after the call that shows its pictures', async () => {
  const { engine, tokenizer } = await opened('qwen2_5_vl');
  const { ids, shows } = tokenizer.shownPrompt([{ role: 'user', content: withMarks('<image>', [pictures[0]]) }], '');
  const sampling = { ...plainSampling, max_new_tokens: 2, max_model_len: 1000 };
  const order: string[] = [];
  await Promise.all([
    engine.generate([{ row: 'a', append: ids, shows, seed: 1 }], sampling).then(() => order.push('generate')),
    engine.release(['a']).then(() => order.push('release')),
  ]);
  expect(order).toEqual(['generate', 'release']);
});
