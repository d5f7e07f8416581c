// Graphs of a vision encoder: pictures to image features, and the gradient of the encoder's parameters for given
// gradients of the features. The decoder's graphs read features and return their gradients, so a picture is encoded once,
// however many samples show it, and its gradient is computed once for all of them.
import { Graph } from '../../engine/graph/graph';
import type { Lowering, Value } from '../../engine/graph/graph';
import { mul, sumAll } from '../../engine/graph/ops';
import { DecoderParameters } from '../decoder/decoder-parameters';
import type { ParameterPlan } from '../decoder/decoder-parameters';
import { outputGradients } from '../graphs/policy-graphs';
import type { EncoderConfig } from './encoder-config';
import { qwenFeatures } from './qwen-encoder';
import { qwen3Features } from './qwen3-encoder';
import { siglipFeatures } from './siglip-encoder';

/** An encoder's configuration, and how its parameters are stored. */
export interface EncoderNetwork {
  config: EncoderConfig;
  plan: ParameterPlan;
  /** Folder of the files that contain the mapped parameters. */
  folder?: string;
}

/**
 * Returns the image features [features, featureWidth] of packed patches. `checkpointed`: whether each layer's intermediate
 * values are recomputed in the backward pass.
 */
function imageFeatures(g: Graph, c: EncoderConfig, parameters: DecoderParameters, checkpointed = false): Value {
  switch (c.kind) {
    case 'siglip':
      return siglipFeatures(g, c, parameters, checkpointed);
    case 'qwen2_5_vl':
      return qwenFeatures(g, c, parameters, checkpointed);
    case 'qwen3_vl':
      return qwen3Features(g, c, parameters, checkpointed);
  }
}

/** Builds the graph that encodes pictures. Inputs: see the encoder of each family. Output: features [features, featureWidth]. */
export function encodeGraph({ config, plan }: EncoderNetwork, lowering: Lowering): Graph {
  const g = new Graph('encode', lowering);
  g.output('features', imageFeatures(g, config, new DecoderParameters(g, plan)));
  return g;
}

/**
 * Builds the graph that computes the gradient of the encoder's trained parameters. Inputs: those of `encodeGraph`, and
 * feature_gradients [features, featureWidth], the gradient of the loss for each feature; zero for the dummy square.
 * Outputs: one gradient per trained parameter.
 */
export function encoderGradientGraph(
  { config, plan }: EncoderNetwork,
  lowering: Lowering,
  checkpointed: boolean,
): Graph {
  const g = new Graph('encoder-gradient', lowering);
  const parameters = new DecoderParameters(g, plan);
  const features = imageFeatures(g, config, parameters, checkpointed);
  const given = g.input('feature_gradients', 'float32', features.dims);
  outputGradients(g, sumAll(g, mul(g, features, given)), parameters);
  return g;
}
