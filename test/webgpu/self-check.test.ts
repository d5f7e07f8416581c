// The self-check on a real adapter: WebGPU passes with rounding errors only, and a software GPU is not reported as
// faster than the CPU.
import { expect, it } from 'vitest';
import { describeHalves, describeWebgpu } from './adapter';
import { compared, computeShown, computeSmall, selfCheck } from '../../extension/models/self-check';

describeWebgpu('the self-check', () => {
  it('passes on WebGPU, whose gradients differ by rounding errors only', async () => {
    const [found, expected] = [
      await computeSmall({ provider: 'webgpu', threads: 1 }),
      await computeSmall({ threads: 1 }),
    ];
    const { differs, gradient } = compared(found, expected);
    expect(differs).toBeNull();
    expect(gradient).toBeLessThan(1e-4);
    expect(gradient).toBeGreaterThan(0); // otherwise it was computed on the CPU
  });

  it.each(['qwen2_5_vl', 'qwen3_vl', 'siglip'] as const)('passes with pictures: %s', async encoder => {
    for (const trained of [false, true]) {
      const shown = { encoder, trained, generates: false };
      const [found, expected] = [
        await computeShown(shown, { provider: 'webgpu', threads: 1 }),
        await computeShown(shown, { threads: 1 }),
      ];
      const { differs, gradient } = compared(found, expected);
      expect(differs).toBeNull();
      expect(gradient).toBeLessThan(1e-3);
      expect(found.values).not.toEqual(expected.values); // otherwise it was computed on the CPU
    }
  });

  it('measures matrix products on the device and on the CPU', async () => {
    const checked = await selfCheck('webgpu', 2);
    expect(checked).toMatchObject({ passed: true });
    expect(checked.about).toMatch(
      /^loss, gradients and tokens match the CPU's \(gradients within \d\.\de-\d\), and matrix products take [\d.]+ ms \(CPU: [\d.]+ ms\)$/,
    );
    if (process.env.VK_ICD_FILENAMES) expect(checked.faster).toBe(false);
  });
});

describeHalves('float16 products', () => {
  it('pass the self-check with the errors of half precision', async () => {
    const expected = await computeSmall({ threads: 1 });
    const found = await computeSmall({ provider: 'webgpu', threads: 1 }, 'float16');
    const { differs, gradient } = compared(found, expected, 'float16');
    expect(differs).toBeNull();
    expect(gradient).toBeGreaterThan(1e-4);
    expect(gradient).toBeLessThan(2e-2);
  });
});
