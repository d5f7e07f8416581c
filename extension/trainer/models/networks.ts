// The ways in which a model's parameters are held, as networks that graphs are built from: all trained; frozen in the model's own files;
// frozen with trained adapters; for rollouts, laid out for products of few rows, in 8 bits where asked. What is trained is fed from a
// parameter bank; what is frozen is read from the files by onnxruntime itself and never enters JavaScript.
import type { DecoderConfig, ParameterSpec } from './decoder-config';
import { parameterSpecs } from './decoder-config';
import type { Adapter, FileTensor, ParameterPlan, TensorSource } from './decoder-parameters';
import { loraModules, loraSpecs } from './lora';
import type { LoraOptions } from './lora';
import type { Network } from './policy-graphs';
import type { Weights } from './weights';

/** Where a model's tensors lie: files inside one folder. */
export interface MappedTensors {
  folder: string;
  tensors: ReadonlyMap<string, FileTensor>;
}

const input: TensorSource = { kind: 'input' };

/** Every parameter is trained. */
export function trainedNetwork(config: DecoderConfig, specs = parameterSpecs(config)): Network {
  return { config, plan: { specs, source: () => input } };
}

/** No parameter is trained; each is read from its file. */
export function frozenNetwork(config: DecoderConfig, { folder, tensors }: MappedTensors): Network {
  const source = (name: string): TensorSource => {
    const tensor = tensors.get(name);
    if (!tensor) throw new Error(`networks: no file holds ${name}`);
    return tensor;
  };
  return { config, folder, plan: { specs: parameterSpecs(config), source } };
}

/** The network with all its trained parameters as they are now: constants, which onnxruntime lays out for products of few rows. */
export function laidOutNetwork(network: Network, weights: Weights): Network {
  const source = (name: string): TensorSource => ({ kind: 'memory', data: weights.view(name) });
  return { ...network, plan: { ...network.plan, source } };
}

/** `base` with adapters, which are trained; `extra` parameters, such as a value head, are trained too. */
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

/** The network as it scores: nothing is left out of the adapters' inputs. */
export function withoutDropout(network: Network): Network {
  const { adapter } = network.plan;
  return adapter ? { ...network, plan: { ...network.plan, adapter: { ...adapter, dropout: 0 } } } : network;
}
