// Which GPUs the benchmarks use: none found, none that passes its self-check, and one that does.
import { expect, test } from 'vitest';
import { gpuDefinitions, gpuDevices } from '../../bench/gpu-benchmarks';
import type { Provider } from '../../../extension/engine/session/devices';

const said = (): undefined => undefined;
const machine = (candidates: Provider[], passed: boolean) => ({
  candidates: async () => candidates,
  check: async () => ({ passed, faster: passed, about: passed ? 'the same results' : 'its loss differs' }),
});

test('without a GPU there is one sentence with the reason', async () => {
  expect(await gpuDevices(undefined, said, machine([], true))).toMatch(
    /^bench: no GPU was measured, because this machine has neither .* nor .*$/,
  );
});

test('a GPU that fails its self-check is not measured', async () => {
  expect(await gpuDevices(undefined, said, machine(['webgpu'], false))).toMatch(
    /^bench: no GPU was measured, because the self-check failed \(webgpu.*: its loss differs\)$/,
  );
});

test('a GPU that passes is measured in both precisions, in training and rollout', async () => {
  const devices = await gpuDevices(undefined, said, machine(['webgpu'], true));
  if (typeof devices === 'string') throw new Error(devices);
  expect(devices.map(({ provider }) => provider)).toEqual(['webgpu']);
  const definitions = gpuDefinitions(devices[0], false);
  expect(definitions.map(({ name }) => name)).toEqual([
    'training, 0.5B LoRA r16, webgpu, float32',
    'rollout, 0.5B LoRA r16, webgpu, float32',
    'training, 0.5B LoRA r16, webgpu, float16',
    'rollout, 0.5B LoRA r16, webgpu, float16',
  ]);
  expect(definitions[2].settings).toMatchObject({ device: 'webgpu', precision: 'float16', base_dtype: 'bfloat16' });
});
