// The devices that a model can be asked to run on, and what this machine's onnxruntime has of them. `auto` is a question, not a device:
// it is answered here, once a start, by trying what is there. onnxruntime-node tells nothing of a GPU (not even whether it is one or a
// program that plays it), so a provider has to compute what the CPU computes, and faster, to be preferred to it.
import { existsSync, readdirSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../protocol/user-error';
import { installation } from '../installation';
import { loadRuntime } from './session';
import type { Provider } from './session';

export type { Provider } from './session';

export const devices = ['auto', 'cpu', 'webgpu', 'cuda'] as const;
/** What a user may ask for. */
export type Device = (typeof devices)[number];

export interface ProviderState {
  provider: Provider;
  /** This build of onnxruntime knows the provider. */
  known: boolean;
  /** Its library is there: in the package itself, or installed beside it. */
  installed: boolean;
}

/** What trying a provider showed (models/self-check.ts). */
export interface Checked {
  /** It computes what the CPU computes. */
  passed: boolean;
  /** It multiplies matrices faster than the CPU; false where it did not pass. */
  faster: boolean;
  /** What was found, with its numbers; follows "webgpu: " or "…, but ". */
  about: string;
}

const cudaFolder = (): string =>
  join(installation.root, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6', platform(), arch());
const cudaLibrary = platform() === 'win32' ? 'onnxruntime_providers_cuda.dll' : 'libonnxruntime_providers_cuda.so';

/** Providers in the order in which `auto` prefers them, with what is there of each. */
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
 * The provider that `device` stands for among those of `states`, of which `auto` takes the first. `asked` is what the user calls the
 * question, such as --device. Throws a UserError where this machine has it not.
 */
export function chooseProvider(device: Device, states: readonly ProviderState[], asked: string): Provider {
  const usable = states.filter(({ known, installed }) => known && installed);
  const found = usable.find(({ provider }) => device === 'auto' || provider === device);
  if (found) return found.provider;
  const rest = `use one of ${['auto', ...usable.map(({ provider }) => provider)].join(', ')}`;
  const state = states.find(({ provider }) => provider === device);
  if (!state?.known)
    throw new UserError(`${asked} is ${device}, which onnxruntime has not on ${platform()}-${arch()}: ${rest}`);
  throw new UserError(
    `${asked} is ${device}, but ${cudaLibrary} is not in ${cudaFolder()}, since no package of the extension has it: ${rest} (a copy built from source takes it by ONNXRUNTIME_NODE_INSTALL=cuda12 npm rebuild onnxruntime-node)`,
  );
}

/**
 * Providers that `auto` tries before the CPU. On Linux a GPU of any maker shows as a render node; without one WebGPU would find at best
 * a program that plays a GPU, and trying it costs seconds.
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
 * The provider that a model is loaded on, and what was found on the way (null where nothing was tried). A device that is named must pass
 * its check; `auto` takes the first candidate that passes it and is faster than the CPU.
 * @throws UserError naming what `asked` is called and what the device got wrong
 */
export async function resolveDevice(
  device: Device,
  asked: string,
  candidates: readonly Provider[],
  check: (provider: Provider) => Promise<Checked>,
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
