// Feeds of the vision encoders that are kept for pictures of one size, and the features of a narrow encoder with one and
// with several threads, on ragen-tiny-vision.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session } from '../../../../extension/engine/session/session';
import { encoderFeeds } from '../../../../extension/models/vision/encoder-feeds';
import { encodeGraph } from '../../../../extension/models/vision/encoder-graphs';
import { patchWidth } from '../../../../extension/models/vision/encoder-shape';
import { mapEncoder } from '../../../../extension/models/vision/mapped-encoder';
import type { PicturePatches } from '../../../../extension/models/vision/patches';

const folder = join('media', 'models', 'ragen-tiny-vision');
const { config, network } = await mapEncoder(folder);
const { encoder } = config;

function picture(rows: number, columns: number, seed: number): PicturePatches {
  const stream = new RandomStream(seed);
  const values = Float32Array.from({ length: rows * columns * patchWidth(encoder) }, () => stream.uniform() - 0.5);
  return { rows, columns, values };
}

it('kept layouts give the feeds of a new configuration, whatever was asked for before', () => {
  const asked = Array.from({ length: 20 }, (_, i) => [picture(2 + 2 * (i % 9), 4, i)]);
  asked.push([picture(8, 8, 30), picture(4, 6, 31)], [picture(4, 6, 32), picture(8, 8, 33)], [picture(8, 8, 34)]);
  for (const pictures of [...asked, ...asked.toReversed()])
    expect(encoderFeeds(encoder, pictures)).toEqual(encoderFeeds(structuredClone(encoder), pictures));
});

it('features have the same bits with one and with four threads, and patches stay as they are', async () => {
  const pictures = [picture(8, 8, 1)];
  const before = pictures[0].values.slice();
  const { feeds } = encoderFeeds(encoder, pictures);
  const encoded = async (threads: number): Promise<unknown> => {
    const session = await Session.create(encodeGraph(network, 'cpu'), { threads, folder: network.folder });
    const { features } = await session.run(feeds);
    await session.release();
    return features.data;
  };
  expect(await encoded(4)).toEqual(await encoded(1));
  expect(pictures[0].values).toEqual(before);
});
