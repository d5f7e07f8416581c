// How a requested device resolves: on machines that have it, that do not have it, and where it computes different
// results.
import { platform } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import {
  autoCandidates,
  chooseProvider,
  providerStates,
  resolveDevice,
} from '../../../../extension/engine/session/devices';
import type { DeviceCheck, Provider, ProviderState } from '../../../../extension/engine/session/devices';

const states = (there: Partial<Record<Provider, 'absent' | 'unknown'>>): ProviderState[] =>
  (['cuda', 'webgpu', 'cpu'] as const).map(provider => ({
    provider,
    known: there[provider] !== 'unknown',
    installed: there[provider] === undefined,
  }));
const good: DeviceCheck = { passed: true, faster: true, about: 'all is well' };
const slow: DeviceCheck = { passed: true, faster: false, about: 'it is slow' };
const wrong: DeviceCheck = { passed: false, faster: false, about: 'its gradients differ' };

describe('a device', () => {
  it('is a provider of this machine; the CPU is always available', async () => {
    const found = await providerStates();
    expect(found.map(({ provider }) => provider)).toEqual(['cuda', 'webgpu', 'cpu']);
    expect(found[2]).toEqual({ provider: 'cpu', known: true, installed: true });
    expect(chooseProvider('cpu', found, '--device')).toBe('cpu');
  });

  it('is used when it is requested and available', () => {
    expect(chooseProvider('webgpu', states({}), '--device')).toBe('webgpu');
    expect(chooseProvider('cuda', states({}), '--device')).toBe('cuda');
    expect(chooseProvider('auto', states({ cuda: 'absent' }), '--device')).toBe('webgpu');
  });

  it('is refused with a remedy when it is not available', () => {
    expect(() => chooseProvider('webgpu', states({ webgpu: 'unknown' }), '--device')).toThrow(
      /^--device is webgpu, which onnxruntime does not support on [\w-]+: use one of auto, cuda, cpu$/,
    );
    expect(() => chooseProvider('cuda', states({ cuda: 'absent' }), 'workbench.device')).toThrow(
      /^workbench\.device is cuda, but \S+ does not contain \S+providers_cuda\S+, which the extension's packages do not include: use one of auto, webgpu, cpu, or install the library in a source checkout with ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node$/,
    );
  });
});

describe('auto', () => {
  it('tries every available device except the CPU; WebGPU only when there is a GPU', () => {
    expect(autoCandidates(states({}), true)).toEqual(['cuda', 'webgpu']);
    expect(autoCandidates(states({}), false)).toEqual(['cuda']);
    expect(autoCandidates(states({ cuda: 'absent' }), true)).toEqual(['webgpu']);
    if (platform() !== 'linux') expect(autoCandidates(states({ cuda: 'absent' }))).toEqual(['webgpu']);
  });

  it.each<[string, Partial<Record<Provider, DeviceCheck>>, Provider, string | null]>([
    ['the first that is right and faster', { cuda: good, webgpu: good }, 'cuda', 'cuda: all is well'],
    [
      'the next where one is wrong',
      { cuda: wrong, webgpu: good },
      'webgpu',
      'cuda: its gradients differ; webgpu: all is well',
    ],
    ['the CPU where the others are slower', { webgpu: slow }, 'cpu', 'webgpu: it is slow'],
    ['the CPU where there is no other', {}, 'cpu', null],
  ])('is %s', async (_, checks, provider, about) => {
    const found = await resolveDevice(
      'auto',
      'workbench.device',
      Object.keys(checks) as Provider[],
      async p => checks[p]!,
    );
    expect(found).toEqual({ provider, about });
  });
});

describe('a requested device', () => {
  it('is not checked when it is the CPU', async () => {
    const check = vi.fn();
    expect(await resolveDevice('cpu', 'workbench.device', ['webgpu'], check)).toEqual({ provider: 'cpu', about: null });
    expect(check).not.toHaveBeenCalled();
  });

  it('is used when it is slower, and refused when its results are wrong', async () => {
    expect(await resolveDevice('webgpu', '--device', [], async () => slow)).toEqual({
      provider: 'webgpu',
      about: 'webgpu: it is slow',
    });
    await expect(resolveDevice('webgpu', '--device', [], async () => wrong)).rejects.toThrow(
      '--device is webgpu, but its gradients differ: set --device=cpu',
    );
  });
});
