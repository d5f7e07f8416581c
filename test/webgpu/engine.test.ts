// Compares all operations of the engine on WebGPU with the CPU: tokens are equal, and numbers differ only by rounding.
// Covers full training, adapters over a memory-mapped base (also in bfloat16 shards), and stored or recomputed
// activations.
import { expect, it } from 'vitest';
import { describeWebgpu } from './adapter';
import { engineLife } from './engine-life';
import type { LifeOptions } from './engine-life';
import { goldenFolder, relativeError } from '../support/small-models';

const lora = { rank: 4, alpha: 8, dropout: 0, targets: 'all-linear' };
const cases: [string, Omit<LifeOptions, 'device'>][] = [
  ['all weights', { modelFolder: goldenFolder('qwen2'), lora: null, checkpointed: false }],
  ['adapters, activations computed again', { modelFolder: goldenFolder('llama'), lora, checkpointed: true }],
];

describeWebgpu('the engine on WebGPU', () => {
  it.each(cases)('trains %s with the results of the CPU', async (_, options) => {
    const [cpu, gpu] = [
      await engineLife({ ...options, device: 'cpu' }),
      await engineLife({ ...options, device: 'webgpu' }),
    ];
    expect(gpu.tokens).toEqual(cpu.tokens);
    expect(Object.keys(gpu.numbers)).toEqual(Object.keys(cpu.numbers));
    for (const [what, numbers] of Object.entries(cpu.numbers))
      expect(relativeError(gpu.numbers[what], numbers), what).toBeLessThan(2e-4);
  });
});
