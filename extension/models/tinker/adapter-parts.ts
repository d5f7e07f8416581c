// Which layers get adapters, in the API's form: attention, MLP and unembedding can be chosen only as a whole. A choice of
// lora.target_modules that is not such a whole cannot be expressed. The local engine has no adapters on the
// unembedding, so it is never chosen; otherwise checkpoints could not be loaded on this machine.
import type { AdapterOptions } from '../../engine/load-options';
import { choosesAll } from '../adapters/lora';

/** The API's choice of layers. */
export interface AdapterParts {
  train_attn: boolean;
  train_mlp: boolean;
  train_unembed: boolean;
}

const attention = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];
const mlp = ['gate_proj', 'up_proj', 'down_proj'];

/** Choices of lora.target_modules that a server can be asked for, for messages. */
export const expressibleTargets = `all-linear, [${attention.join(', ')}] or [${mlp.join(', ')}]`;

/** The parts that `targets` chooses; null if it chooses no whole parts. */
export function adapterParts(targets: AdapterOptions['targets']): AdapterParts | null {
  if (choosesAll(targets)) return { train_attn: true, train_mlp: true, train_unembed: false };
  if (typeof targets === 'string') return null;
  const names = new Set(targets);
  const parts = [attention, mlp].map(part => part.filter(name => names.delete(name)).length / part.length);
  if (names.size > 0 || parts.some(share => share > 0 && share < 1) || parts.every(share => share === 0)) return null;
  return { train_attn: parts[0] === 1, train_mlp: parts[1] === 1, train_unembed: false };
}
