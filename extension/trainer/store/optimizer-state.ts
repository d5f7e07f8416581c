// The optimizer's moments as checkpoint files: `actor.m` and `actor.v`, either as float32, or quantised to bytes in
// blocks. The scales of the blocks are in `actor.m_scale` and `actor.v_scale` (engine/optimizer/byte-moments.ts).
// Writing and reading preserves every bit.
import { UserError } from '../../common/user-error';
import type { MomentState } from '../../engine/engine';
import { bytesOf } from '../../node/files';
import { readBlob, readFloats } from './checkpoint';
import type { Blobs } from './checkpoint-writer';
import type { StoredCheckpoint } from './checkpoint';

/** Returns the files of a network's moments by name. The files do not contain `step`. */
export function optimizerStateFiles(network: string, state: MomentState): Blobs {
  if (state.format === 'float32') return { [`${network}.m`]: state.m, [`${network}.v`]: state.v };
  return {
    [`${network}.m`]: bytesOf(state.m),
    [`${network}.v`]: state.v,
    [`${network}.m_scale`]: state.mScale,
    [`${network}.v_scale`]: state.vScale,
  };
}

/** Reads the moments of a network after `step` updates. @throws UserError for missing or damaged files */
export async function readMoments(checkpoint: StoredCheckpoint, network: string, step: number): Promise<MomentState> {
  const floats = (part: string): Promise<Float32Array> => readFloats(checkpoint, `${network}.${part}`);
  if (!Object.hasOwn(checkpoint.manifest.files, `${network}.m_scale`))
    return checked({ format: 'float32', step, m: await floats('m'), v: await floats('v') }, checkpoint, network);
  const m = await readBlob(checkpoint, `${network}.m`);
  const state: MomentState = {
    format: 'int8',
    step,
    m: new Int8Array(m.buffer, m.byteOffset, m.length),
    v: await readBlob(checkpoint, `${network}.v`),
    mScale: await floats('m_scale'),
    vScale: await floats('v_scale'),
  };
  return checked(state, checkpoint, network);
}

function checked(state: MomentState, { folder }: StoredCheckpoint, network: string): MomentState {
  if (state.m.length === state.v.length) return state;
  const sizes = `${network}.m has ${state.m.length} parameters, but ${network}.v has ${state.v.length}`;
  throw new UserError(`store: the checkpoint ${folder} is damaged (${sizes}): resume from another checkpoint`);
}
