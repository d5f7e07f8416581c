// Networks for each way to store a model's parameters: all trained, frozen in the model's files, or frozen with trained
// adapters. In networks for rollouts, parameters are prepacked for matmuls with few rows, or stored in 8 bits. Trained
// parameters are fed from a parameter bank. Frozen parameters are read from the files by onnxruntime and never loaded
// into JavaScript memory.
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import { parameterSpecs } from './decoder-config';
import type { Adapter, EvenRows, FileTensor, ParameterPlan, TensorSource } from './decoder-parameters';
import { loraModules, loraSpecs } from '../adapters/lora';
import type { LoraOptions } from '../adapters/lora';
import type { Network } from '../graphs/policy-graphs';
import type { EncoderConfig } from '../vision/encoder-config';
import type { EncoderNetwork } from '../vision/encoder-graphs';
import { encoderSpecs } from '../vision/encoder-config';
import { isOfDecoder } from '../vision/stored-names';
import type { Weights } from '../weights/weights';

/** Locations of a model's tensors in files of one folder. */
export interface MappedTensors {
  folder: string;
  tensors: ReadonlyMap<string, FileTensor>;
}

const input: TensorSource = { kind: 'input' };

/** Returns a network in which every parameter is trained. */
export function trainedNetwork(config: DecoderConfig, specs = parameterSpecs(config)): Network {
  return { config, plan: { specs, source: () => input } };
}

/** Returns a network without trained parameters; every parameter is mapped from its file. */
export function frozenNetwork(config: DecoderConfig, mapped: MappedTensors): Network {
  return { config, folder: mapped.folder, plan: { specs: parameterSpecs(config), source: mappedSource(mapped) } };
}

/** Returns the sources of tensors that onnxruntime maps from their files. */
export const mappedSource =
  ({ tensors }: Pick<MappedTensors, 'tensors'>) =>
  (name: string): TensorSource => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`networks: no file contains ${name}`);
    return tensor;
  };

/**
 * Returns the network with its trained parameters copied into constants. onnxruntime prepacks constants for matmuls
 * with few rows.
 */
export function laidOutNetwork(network: Network, weights: Weights): Network {
  const source = (name: string): TensorSource => ({ kind: 'memory', data: weights.view(name) });
  return { ...network, plan: { ...network.plan, source } };
}

/** Returns the network for sampling: the result of a row has the same bits in every batch (`EvenRows`). */
export function evenNetwork(network: Network, evenRows: EvenRows): Network {
  return { ...network, plan: { ...network.plan, evenRows } };
}

/**
 * Returns `base` with trained adapters and trained `extra` parameters, such as a value head. `encoder`: the vision encoder
 * among whose layers adapters are chosen too; its own adapters are those of `adaptedEncoder`.
 */
export function adaptedNetwork(
  base: Network,
  lora: LoraOptions,
  extra: readonly ParameterSpec[] = [],
  encoder?: EncoderConfig,
): Network {
  return { ...base, plan: adaptedPlan(base.plan, base.config, lora, encoder, isOfDecoder, extra) };
}

/** Returns the vision encoder with trained adapters on those of its layers that `lora` selects; they have no dropout. */
export function adaptedEncoder(base: EncoderNetwork, decoder: DecoderConfig, lora: LoraOptions): EncoderNetwork {
  const without = { ...lora, dropout: 0 };
  return { ...base, plan: adaptedPlan(base.plan, decoder, without, base.config, name => !isOfDecoder(name), []) };
}

/** Returns a vision encoder in which every parameter is trained. */
export const trainedEncoder = (config: EncoderConfig): EncoderNetwork => ({
  config,
  plan: { specs: encoderSpecs(config), source: () => input },
});

/** Returns the plan with the adapters on the modules for which `isOwn` is true, and with `extra` parameters. */
function adaptedPlan(
  base: ParameterPlan,
  config: DecoderConfig,
  lora: LoraOptions,
  encoder: EncoderConfig | undefined,
  isOwn: (name: string) => boolean,
  extra: readonly ParameterSpec[],
): ParameterPlan {
  const trained = [...loraSpecs(config, lora, encoder).filter(({ name }) => isOwn(name)), ...extra];
  const names = new Set(trained.map(({ name }) => name));
  const modules = loraModules(config, lora.targets, { exclude: lora.exclude, encoder }).filter(isOwn);
  const adapter: Adapter = { ...lora, modules: new Set(modules) };
  return {
    ...base,
    adapter,
    specs: [...base.specs, ...trained],
    source: name => (names.has(name) ? input : base.source(name)),
  };
}

/** Returns the network without adapter dropout, for scoring. */
export function withoutDropout(network: Network): Network {
  const { adapter } = network.plan;
  return adapter ? { ...network, plan: { ...network.plan, adapter: { ...adapter, dropout: 0 } } } : network;
}
