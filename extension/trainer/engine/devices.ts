// The devices that a model can be asked to run on, and what this machine's onnxruntime has of them. `auto` is a question, not a device:
// it is answered here, once, so that every command and run answers it alike.
import { existsSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { UserError } from '../../protocol/user-error';
import { installation } from '../installation';
import { loadRuntime } from './session';

export const devices = ['auto', 'cpu', 'webgpu', 'cuda'] as const;
/** What a user may ask for. */
export type Device = (typeof devices)[number];
/** Where a session runs. */
export type Provider = Exclude<Device, 'auto'>;

export interface ProviderState {
  provider: Provider;
  /** This build of onnxruntime knows the provider. */
  known: boolean;
  /** Its library is there: in the package itself, or installed beside it. */
  installed: boolean;
}

/** Providers in the order in which `auto` prefers them, with what is there of each. */
export async function providerStates(): Promise<ProviderState[]> {
  const { listSupportedBackends } = await loadRuntime();
  const supported = new Map(listSupportedBackends().map(({ name, bundled }) => [name, bundled]));
  const beside = join(installation.root, 'node_modules', 'onnxruntime-node', 'bin', 'napi-v6', platform(), arch());
  const library = platform() === 'win32' ? 'onnxruntime_providers_cuda.dll' : 'libonnxruntime_providers_cuda.so';
  return (['cuda', 'webgpu', 'cpu'] as const).map(provider => ({
    provider,
    known: supported.has(provider),
    installed: supported.get(provider) === true || (provider === 'cuda' && existsSync(join(beside, library))),
  }));
}

/** Providers that the engine has graphs for. */
const served: readonly Provider[] = ['cpu'];

/** The provider that `device` stands for. Throws a UserError where this machine has it not. */
export function chooseProvider(device: Device, states: readonly ProviderState[], asked: string): Provider {
  const usable = states.filter(({ provider, known, installed }) => known && installed && served.includes(provider));
  const found = usable.find(({ provider }) => device === 'auto' || provider === device);
  if (found) return found.provider;
  const rest = `use one of ${['auto', ...usable.map(({ provider }) => provider)].join(', ')}`;
  const state = states.find(({ provider }) => provider === device);
  if (!state?.known)
    throw new UserError(`${asked} is ${device}, which onnxruntime has not on ${platform()}-${arch()}: ${rest}`);
  if (!state.installed)
    throw new UserError(`${asked} is ${device}, whose onnxruntime library is not installed on this machine: ${rest}`);
  throw new UserError(`${asked} is ${device}, but running a model there is not available in this version: ${rest}`);
}
