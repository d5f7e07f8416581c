// Pictures that are encoded together have the features and places that pictures of a run have, which are encoded alone.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { withMarks } from '../../../../extension/common/picture-mark';
import { mapEncoder } from '../../../../extension/models/vision/mapped-encoder';
import { PictureEncoder } from '../../../../extension/models/vision/picture-encoder';
import { PictureFeatures } from '../../../../extension/models/vision/picture-features';
import { readProcessorOptions } from '../../../../extension/models/vision/processor-folder';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { pictureName } from '../../../../extension/node/picture-store';
import { ShownPictures } from '../../../../extension/trainer/sft/shown-pictures';
import { relativeError } from '../../../support/small-models';
import { temporaryFolder } from '../../../support/temporary-folder';
import { makeVisionModel } from '../../../support/vision-checkpoints';

const folder = temporaryFolder();

it('encodes the pictures of samples and rows as a run does', async () => {
  const modelFolder = await makeVisionModel(folder(), 'qwen3_vl');
  const store = join(folder(), 'pictures');
  mkdirSync(store);
  const files = ['board.png', 'odd.png'].map(name => readFileSync(join('test/golden/vision/pictures', name)));
  for (const bytes of files) writeFileSync(join(store, pictureName(bytes)), bytes);
  const { config, network } = await mapEncoder(modelFolder);
  const processor = readProcessorOptions(modelFolder, config.encoder);
  if (processor.kind !== 'patches') throw new Error('the processor of Qwen3-VL makes patches');
  const encoder = new PictureEncoder(network, undefined, { threads: 1 });
  const pictures = new ShownPictures(config, processor, encoder);
  const features = new PictureFeatures(store, config, processor, encoder);

  const tokenizer = readTokenizer(modelFolder);
  const shown = async (...images: Uint8Array[]) => {
    const text = images.map(() => 'a state: <image>').join();
    const marked = withMarks(text, await pictures.admit(text, images));
    return tokenizer.shownPrompt([{ role: 'user', content: marked }], '');
  };
  const samples = [await shown(files[0], files[1]), await shown(), await shown(files[1])];
  const [found, expected] = [await pictures.ofSamples(samples), await features.ofSamples(samples)];
  const values = ({ images }: { images?: typeof found.images }) => images!.values.data as Float32Array;
  expect(relativeError(values(found), values(expected))).toBeLessThan(1e-5);
  expect(found.samples[0].pictures).toEqual(expected.samples[0].pictures);
  expect(found.samples[2].pictures).toEqual(expected.samples[2].pictures);
  expect(found.samples[1].pictures.features).toEqual(new Int32Array(samples[1].ids.length).fill(-1));

  const [rows, wanted] = [await pictures.ofRows(samples, [5, 6, 7]), await features.ofRows(samples, [5, 6, 7])];
  expect(rows[0]!.positions).toEqual(wanted[0]!.positions);
  expect(rows[0]!.features).toEqual(wanted[0]!.features);
  expect(rows[1]).toBeUndefined();

  await expect(pictures.admit('no mark', [files[0]])).rejects.toThrow(/one mark per picture/);
  const unknown = [{ ids: [1], shows: [{ at: 0, picture: 'none.png' }] }];
  await expect(pictures.ofSamples(unknown)).rejects.toThrow('none.png was not admitted');
}, 60_000);
