// Compares parameters on the device with parameters on the host for equal gradients. Weights, norms and moments agree
// to 1e-6 over several steps with several gradients each, and after saving and restoring the state.
import { expect, it } from 'vitest';
import { describeWebgpu } from './adapter';
import { DeviceTensor } from '../../extension/engine/session/device-tensor';
import type { OptimizerOptions } from '../../extension/engine/loss-options';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import type { SessionOptions, Tensor } from '../../extension/engine/session/session';
import { Transfer } from '../../extension/engine/session/transfer';
import { DeviceParameters, openBank } from '../../extension/models/weights/device-parameters';
import { HostParameters } from '../../extension/models/weights/parameter-bank';
import type { ParameterBank } from '../../extension/models/weights/parameter-bank';
import { gradientName } from '../../extension/models/graphs/policy-graphs';
import { Weights } from '../../extension/models/weights/weights';
import { relativeError } from '../support/small-models';

const webgpu: SessionOptions = { provider: 'webgpu', threads: 1 };
const specs = [
  { name: 'matrix', dims: [5, 7] },
  { name: 'vector', dims: [3] },
  { name: 'table', dims: [40, 9] },
];
const optimizer: OptimizerOptions = {
  lr: 0.02,
  betas: [0.9, 0.99],
  eps: 1e-6,
  weight_decay: 0.1,
  grad_clip: 1,
};

function random(stream: RandomStream, size = 1): Weights {
  const weights = new Weights(specs);
  for (const { name } of specs) weights.view(name).forEach((_, i, view) => (view[i] = size * stream.normal()));
  return weights;
}

const asResult = (weights: Weights): Record<string, Tensor> =>
  Object.fromEntries(Object.entries(weights.feeds()).map(([name, tensor]) => [gradientName(name), tensor]));

async function uploaded(weights: Weights): Promise<Record<string, Tensor>> {
  const transfer = new Transfer(webgpu);
  const entries = Object.entries(asResult(weights));
  return Object.fromEntries(await Promise.all(entries.map(async ([k, v]) => [k, await transfer.upload(v)] as const)));
}

async function banks(seed: number): Promise<{ host: ParameterBank; device: ParameterBank }> {
  const weights = random(new RandomStream(seed));
  return {
    device: await openBank(weights, webgpu),
    host: await openBank(new Weights(specs, weights.flat.slice()), { threads: 1 }),
  };
}

async function expectAlike(device: ParameterBank, host: ParameterBank): Promise<void> {
  expect(relativeError((await device.read()).flat, (await host.read()).flat)).toBeLessThan(1e-6);
  const [found, expected] = [await device.moments(), await host.moments()];
  expect(found.step).toBe(expected.step);
  expect(relativeError(found.m, expected.m)).toBeLessThan(1e-6);
  expect(relativeError(found.v, expected.v)).toBeLessThan(1e-6);
}

/** Runs a step with the gradients of one mini-batch in parts, some of which are already on the device. */
async function step(bank: ParameterBank, parts: Weights[], t: number): Promise<{ norm: number; applied: boolean }> {
  bank.clearGradient();
  const onDevice = bank instanceof DeviceParameters;
  for (const [i, part] of parts.entries())
    await bank.accumulate(onDevice && i % 2 === 0 ? await uploaded(part) : asResult(part));
  return bank.step({ ...optimizer, lr: optimizer.lr / t });
}

describeWebgpu('parameters on the device', () => {
  it('equal the parameters on the host after each update', async () => {
    const { host, device } = await banks(1);
    expect(host).toBeInstanceOf(HostParameters);
    expect(device).toBeInstanceOf(DeviceParameters);
    expect(Object.values(device.feeds()).every(tensor => tensor instanceof DeviceTensor)).toBe(true);
    const stream = new RandomStream(2);
    for (let t = 1; t <= 6; t++) {
      const parts = Array.from({ length: 1 + (t % 3) }, () => random(stream, t < 4 ? 0.01 : 1)); // clipped from the fourth on
      const [found, expected] = [await step(device, parts, t), await step(host, parts, t)];
      expect(found.applied).toBe(true);
      expect(found.norm / expected.norm).toBeCloseTo(1, 6);
      expect(relativeError((await device.readGradient()).flat, (await host.readGradient()).flat)).toBeLessThan(1e-6);
      await expectAlike(device, host);
    }
  });

  it('do not change if the gradient is not finite', async () => {
    const { device, host } = await banks(3);
    const stream = new RandomStream(4);
    const good = random(stream);
    await step(device, [good], 1);
    await step(host, [good], 1);
    for (const bad of [NaN, Infinity, 1e30]) {
      const gradient = random(stream);
      gradient.view('table')[17] = bad;
      const { norm, applied } = await step(device, [gradient], 2);
      expect(applied).toBe(false);
      expect(Number.isFinite(norm)).toBe(false);
      await expectAlike(device, host);
    }
  });

  it('continue equally from a saved state in another bank', async () => {
    const { device, host } = await banks(5);
    const stream = new RandomStream(6);
    for (let t = 1; t <= 2; t++) {
      const parts = [random(stream)];
      await step(device, parts, t);
      await step(host, parts, t);
    }
    const other = await DeviceParameters.create(new Weights(specs), webgpu);
    await other.write(await device.read());
    await other.restoreMoments(await device.moments());
    const parts = [random(stream), random(stream)];
    await step(other, parts, 3);
    await step(host, parts, 3);
    await expectAlike(other, host);
    await other.release();
  });

  it('refuse a step before any gradient', async () => {
    const { device } = await banks(7);
    await expect(device.step(optimizer)).rejects.toThrow('parameters: no gradient was computed yet');
    await expect(device.readGradient()).rejects.toThrow('parameters: no gradient was computed yet');
  });
});
