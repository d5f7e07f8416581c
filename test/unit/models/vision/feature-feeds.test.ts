// The image features of a pass: only those that its tokens show, each once, under the indices of the smaller matrix.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { float32 } from '../../../../extension/engine/session/session';
import { featureFeeds, featuresInput, pictureFeeds } from '../../../../extension/models/graphs/picture-feeds';
import { parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { goldenFolder } from '../../../support/small-models';

const file = join(goldenFolder('qwen2'), 'config.json');
const config = parseDecoderConfig(JSON.parse(readFileSync(file, 'utf8')), file);
const values = float32(Float32Array.of(0, 1, 10, 11, 20, 21, 30, 31), [4, 2]);

test('a pass receives the features that its tokens show', () => {
  const features = Int32Array.of(-1, 3, 1, -1, 3);
  const feeds = pictureFeeds({ features, positions: new Int32Array(15) }, config);
  const { [featuresInput]: own, feature_indices: indices } = featureFeeds(feeds, values);
  expect(own.dims).toEqual([2, 2]);
  expect([...(own.data as Float32Array)]).toEqual([30, 31, 10, 11]);
  expect([...(indices.data as BigInt64Array)]).toEqual([0n, 0n, 1n, 0n, 0n]);
});

test('a pass without pictures receives none', () => {
  expect(featureFeeds({}, values)).toEqual({});
});
