// Checkpoints whose weights others have quantised (GPTQ, AWQ, bitsandbytes, FP8, …): known by config.json, or by the tensors that stand beside
// or in place of a weight. None can be used here; the trainer's own 8-bit base is made of a float model (quantized-base.ts).
import { isRecord } from '../../protocol/json';

/** What to do about one. */
export const unquantized =
  'use the model as it was before, in float32, float16 or bfloat16 (workbench.base_quantization=int8 holds it in 8 bits under adapters)';

/** Where a config.json says that the weights are quantised, and how; undefined where it does not. */
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

/** Ends of the names that such weights have: GPTQ's and AWQ's, compressed-tensors', FP8's, bitsandbytes'. */
const marks =
  /\.(qweight|qzeros|g_idx|weight_packed|weight_scale(_inv)?|weight_zero_point|SCB|weight\.(absmax|quant_map|nested_absmax|quant_state\.\w+))$/;

/** A tensor that only a quantised checkpoint has. */
export const quantizedTensor = (names: readonly string[]): string | undefined => names.find(name => marks.test(name));
