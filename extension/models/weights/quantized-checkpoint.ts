// Recognises, from config.json or from the tensor names, checkpoints that other tools have quantised (GPTQ, AWQ,
// bitsandbytes, FP8, …). Such checkpoints are not supported; the trainer creates an 8-bit base from a float model
// (quantized-base.ts).
import { isRecord } from '../../common/json';

/** Remedy in errors about quantised checkpoints. */
export const unquantized =
  'use the original model in float32, float16 or bfloat16 (workbench.base_quantization=int8 quantises it for training adapters)';

/**
 * Returns the config.json key that declares quantisation, and the quantisation method; undefined without such a key.
 */
export function quantizationOf(config: Readonly<Record<string, unknown>>): { key: string; method: string } | undefined {
  const keys = ['quantization_config', 'compression_config', 'quantization'];
  const key = keys.find(name => config[name] !== undefined && config[name] !== null);
  return key === undefined ? undefined : { key, method: methodOf(key, config[key]) };
}

function methodOf(key: string, said: unknown): string {
  if (!isRecord(said)) return typeof said === 'string' ? said : 'by an unnamed method';
  const { quant_method: method } = said;
  if (typeof method === 'string') return method;
  if (['load_in_4bit', 'load_in_8bit', '_load_in_4bit', '_load_in_8bit'].some(name => said[name] === true))
    return 'bitsandbytes';
  if (key === 'compression_config') return 'compressed-tensors';
  return key === 'quantization' ? 'MLX' : 'by an unnamed method';
}

/** Matches name suffixes of quantised tensors: GPTQ and AWQ, compressed-tensors, FP8, bitsandbytes. */
const marks =
  /\.(qweight|qzeros|g_idx|weight_packed|weight_scale(_inv)?|weight_zero_point|SCB|weight\.(absmax|quant_map|nested_absmax|quant_state\.\w+))$/;

/** Returns the first tensor name that occurs only in quantised checkpoints; undefined if no name does. */
export const quantizedTensor = (names: readonly string[]): string | undefined => names.find(name => marks.test(name));
