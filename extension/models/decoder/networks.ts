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

/** Returns `base` with trained adapters and trained `extra` parameters, such as a value head. */
export function adaptedNetwork(base: Network, lora: LoraOptions, extra: readonly ParameterSpec[] = []): Network {
  const trained = [...loraSpecs(base.config, lora), ...extra];
  const names = new Set(trained.map(({ name }) => name));
  const adapter: Adapter = { ...lora, modules: new Set(loraModules(base.config, lora.targets)) };
  const plan: ParameterPlan = {
    ...base.plan,
    adapter,
    specs: [...base.plan.specs, ...trained],
    source: name => (names.has(name) ? input : base.plan.source(name)),
  };
  return { ...base, plan };
}

/** Returns the network without adapter dropout, for scoring. */
export function withoutDropout(network: Network): Network {
  const { adapter } = network.plan;
  return adapter ? { ...network, plan: { ...network.plan, adapter: { ...adapter, dropout: 0 } } } : network;
}
