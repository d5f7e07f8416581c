// Optimizer moments in a checkpoint are restored bit by bit, in the format in which they were written.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AdamW } from '../../../../extension/engine/optimizer/adamw';
import type { MomentFormat } from '../../../../extension/engine/load-options';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { optimizerStateFiles, readMoments } from '../../../../extension/trainer/store/optimizer-state';
import { openCheckpoint } from '../../../../extension/trainer/store/checkpoint';
import { writeCheckpoint } from '../../../../extension/trainer/store/checkpoint-writer';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();

test.each<[MomentFormat, Record<string, number>]>([
  ['float32', { 'actor.m': 1200, 'actor.v': 1200 }],
  ['int8', { 'actor.m': 512, 'actor.v': 512, 'actor.m_scale': 8, 'actor.v_scale': 8 }],
])('moments in %s are restored bit by bit', async (format, sizes) => {
  const stream = new RandomStream(1);
  const numbers = (): Float32Array => Float32Array.from({ length: 300 }, () => stream.normal());
  const adamw = await AdamW.create(300, { threads: 1 }, format);
  const options = { lr: 0.1, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
  for (let t = 0; t < 3; t++) await adamw.step(numbers(), numbers(), options);
  const files = optimizerStateFiles('actor', adamw.state);
  const state = { step: 3, offsets: {}, streams: {}, seed_counter: 0, state: {} };
  const path = await writeCheckpoint(folder(), state, files, 1);
  for (const [name, bytes] of Object.entries(sizes)) expect(readFileSync(join(path, name)).length, name).toBe(bytes);
  expect(Object.keys(files)).toEqual(Object.keys(sizes));
  const restored = await readMoments(await openCheckpoint(path), 'actor', 3);
  expect(restored).toEqual(adamw.state);
  expect(restored.m.some(x => x < 0)).toBe(true);
});

test('moments of different lengths are refused', async () => {
  const files = { 'actor.m': new Float32Array(300), 'actor.v': new Float32Array(1) };
  const state = { step: 3, offsets: {}, streams: {}, seed_counter: 0, state: {} };
  const checkpoint = await openCheckpoint(await writeCheckpoint(folder(), state, files, 1));
  await expect(readMoments(checkpoint, 'actor', 3)).rejects.toThrow(
    'actor.m has 300 parameters, but actor.v has 1): resume from another checkpoint',
  );
});
