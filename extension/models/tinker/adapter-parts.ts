// Converts lora.target_modules to the form in which the API selects layers for adapters. The API divides the layers
// into three parts: attention, MLP and unembedding. Each part can be selected only as a whole, so a list with only some
// layers of a part cannot be expressed. The unembedding is never selected. The local engine supports no adapter on the
// unembedding, and could not load a checkpoint that contains one.
import type { AdapterOptions } from '../../engine/load-options';
import { choosesAll } from '../adapters/lora';

/** For each part of the model, under the API's name: whether its layers get adapters. */
export interface AdapterParts {
  train_attn: boolean;
  train_mlp: boolean;
  train_unembed: boolean;
}

const attention = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
const mlp = ['gate_proj', 'up_proj', 'down_proj'];

/** The values of lora.target_modules that the API can express, as text for error messages. */
export const expressibleTargets = `all-linear, [${attention.join(', ')}] or [${mlp.join(', ')}]`;

/**
 * Returns the parts that `targets` selects. Returns null if `targets` is a regular expression, selects only some layers
 * of a part, or selects nothing.
 */
export function adapterParts(targets: AdapterOptions['targets']): AdapterParts | null {
  if (choosesAll(targets)) return { train_attn: true, train_mlp: true, train_unembed: false };
  if (typeof targets === 'string') return null;
  const names = new Set(targets);
  const parts = [attention, mlp].map(part => part.filter(name => names.delete(name)).length / part.length);
  if (names.size > 0 || parts.some(share => share > 0 && share < 1) || parts.every(share => share === 0)) return null;
  return { train_attn: parts[0] === 1, train_mlp: parts[1] === 1, train_unembed: false };
}
