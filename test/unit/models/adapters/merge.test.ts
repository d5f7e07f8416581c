// Merged weights equal peft's, however many rows are merged at a time.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AdapterMerge } from '../../../../extension/models/adapters/merge';
import { readAdapter } from '../../../../extension/models/adapters/peft-adapter';
import { tensorsOf } from '../../../golden/tensors';
import { goldenConfig, goldenFolder, goldenWeights, relativeError } from '../../../support/small-models';

test.each(['all-linear', 'q-v'])('merged weights of %s equal those of peft', async name => {
  const folder = join('test/golden/lora', name);
  const adapter = await readAdapter(folder, { config: goldenConfig('qwen2'), folder: goldenFolder('qwen2') });
  const merge = await AdapterMerge.create(adapter);
  const weights = goldenWeights('qwen2');
  const golden = tensorsOf(join(folder, 'golden.safetensors'));
  const merged = weights.specs.filter(spec => merge.changes(spec.name));
  expect(merged.map(spec => `merged.${spec.name}`).sort()).toEqual(
    [...golden.keys()].filter(key => key.startsWith('merged.')).sort(),
  );
  for (const { name: parameter, dims } of merged) {
    const expected = golden.get(`merged.${parameter}`)!.data;
    const base = weights.view(parameter);
    const whole = await merge.rows(parameter, base, 0);
    expect(relativeError(whole, expected)).toBeLessThan(1e-6);
    expect(relativeError(base, expected)).toBeGreaterThan(0.1);
    const [, width] = dims;
    for (const [first, last] of [
      [0, 1],
      [1, 7],
      [5, dims[0]],
    ])
      expect(
        relativeError(
          await merge.rows(parameter, base.subarray(first * width, last * width), first),
          expected.subarray(first * width, last * width),
        ),
      ).toBeLessThan(1e-6);
    expect(await merge.rows(parameter, base, 0)).toEqual(whole);
  }
  await expect(merge.rows('model.norm.weight', new Float32Array(24), 0)).rejects.toThrow(/no factors/);
  await merge.release();
});
