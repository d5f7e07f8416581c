// Devices that a model can run on, and their availability in this machine's onnxruntime. For `auto`, the available
// providers are tested once per process. onnxruntime-node reports nothing about a GPU, not even whether it is emulated
// in software. A provider is therefore preferred to the CPU only if, in the test, it computes the same results in less
// time.
import { existsSync, readdirSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../common/user-error';
import { installation } from '../../node/installation';
import { loadRuntime } from './session';
import type { Provider } from './session';

export type { Provider } from './session';

export const devices = ['auto', 'cpu', 'webgpu', 'cuda'] as const;
/** Device that a user may request. */
export type Device = (typeof devices)[number];

export interface ProviderState {
  provider: Provider;
  /** Whether this build of onnxruntime includes the provider. */
  known: boolean;
  /**
   * Whether the provider's library exists. The library may be part of onnxruntime-node's package or installed
   * separately.
   */
  installed: boolean;
}

/** Result of testing a provider (models/self-check.ts). */
export interface DeviceCheck {
  /** Whether the provider's results match the CPU's. */
  passed: boolean;
  /** Whether the provider multiplies matrices faster than the CPU; false if `passed` is false. */
  faster: boolean;
  /**
   * What the test has found, including the measured numbers, as a clause. Messages append the clause to "webgpu: " or
   * "…, but ".
   */
  about: string;
}

const cudaFolder = (): string =>
  join(installation.root, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6', platform(), arch());
const cudaLibrary = platform() === 'win32' ? 'onnxruntime_providers_cuda.dll' : 'libonnxruntime_providers_cuda.so';

/** Returns the state of every provider, in the order in which `auto` prefers them. */
export async function providerStates(): Promise<ProviderState[]> {
  const { listSupportedBackends } = await loadRuntime();
  const supported = new Map(listSupportedBackends().map(({ name, bundled }) => [name, bundled]));
  return (['cuda', 'webgpu', 'cpu'] as const).map(provider => ({
    provider,
    known: supported.has(provider),
    installed: supported.get(provider) === true || (provider === 'cuda' && existsSync(join(cudaFolder(), cudaLibrary))),
  }));
}

/**
 * Returns the provider for `device`; for `auto`, the first usable provider in `states`. `asked` is the name of the
 * option in messages, such as --device. Throws a UserError if the device is not available on this machine.
 */
export function chooseProvider(device: Device, states: readonly ProviderState[], asked: string): Provider {
  const usable = states.filter(({ known, installed }) => known && installed);
  const found = usable.find(({ provider }) => device === 'auto' || provider === device);
  if (found) return found.provider;
  const rest = `use one of ${['auto', ...usable.map(({ provider }) => provider)].join(', ')}`;
  const state = states.find(({ provider }) => provider === device);
  if (!state?.known)
    throw new UserError(
      `${asked} is ${device}, which onnxruntime does not support on ${platform()}-${arch()}: ${rest}`,
    );
  throw new UserError(
    `${asked} is ${device}, but ${cudaFolder()} does not contain ${cudaLibrary}, which the extension's packages do not include: ${rest}, or install the library in a source checkout with ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node`,
  );
}

/**
 * Returns the providers that `auto` tests before the CPU. On Linux, every GPU has a render node. If there is no render
 * node, WebGPU is not tested: it could only run in a software emulation, and the test would take seconds.
 */
export function autoCandidates(states: readonly ProviderState[], renderNodes = hasRenderNode()): Provider[] {
  return states
    .filter(({ provider, known, installed }) => provider !== 'cpu' && known && installed)
    .map(({ provider }) => provider)
    .filter(provider => provider !== 'webgpu' || renderNodes);
}

function hasRenderNode(): boolean {
  if (platform() !== 'linux') return true;
  return existsSync('/dev/dri') && readdirSync('/dev/dri').some(name => name.startsWith('renderD'));
}

/**
 * Returns the provider to load a model on, and the test findings (null if nothing was tested). A device that the user
 * requested must pass its check; `auto` selects the first candidate that passes and is faster than the CPU.
 * @throws UserError that names the option `asked` and the reason why the device cannot be used
 */
export async function resolveDevice(
  device: Device,
  asked: string,
  candidates: readonly Provider[],
  check: (provider: Provider) => Promise<DeviceCheck>,
): Promise<{ provider: Provider; about: string | null }> {
  if (device === 'cpu') return { provider: 'cpu', about: null };
  if (device !== 'auto') {
    const { passed, about } = await check(device);
    if (!passed) throw new UserError(`${asked} is ${device}, but ${about}: set ${asked}=cpu`);
    return { provider: device, about: `${device}: ${about}` };
  }
  const found: string[] = [];
  for (const provider of candidates) {
    const { passed, faster, about } = await check(provider);
    found.push(`${provider}: ${about}`);
    if (passed && faster) return { provider, about: found.join('; ') };
  }
  return { provider: 'cpu', about: found.length > 0 ? found.join('; ') : null };
}
