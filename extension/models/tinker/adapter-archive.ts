// The adapter in a checkpoint archive of a server: a tar.gz with an adapter in PEFT format.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { parseTar } from 'nanotar';
import { UserError } from '../../common/user-error';
import type { NamedTensor } from '../../engine/engine';
import { adapterWeightsName, peftPrefix } from '../adapters/peft-adapter';
import { SafetensorsFile } from '../weights/safetensors';

/**
 * Returns the tensors of the archive's adapter, under their names without PEFT's prefix.
 * @throws UserError if the archive holds none or is damaged
 */
export async function adapterTensors(archive: Uint8Array, url: string): Promise<NamedTensor[]> {
  const data = await weightsIn(archive);
  if (!data)
    throw new UserError(
      `engine: the checkpoint archive of ${url} has no ${adapterWeightsName}: use a server that exports adapters in PEFT format`,
    );
  const folder = await mkdtemp(join(tmpdir(), 'ragen-adapter-'));
  try {
    const path = join(folder, adapterWeightsName);
    await writeFile(path, data);
    const file = await SafetensorsFile.open(path);
    try {
      const tensors: NamedTensor[] = [];
      for (const { name, shape } of file.tensors.values())
        tensors.push({
          name: name.startsWith(peftPrefix) ? name.slice(peftPrefix.length) : name,
          dims: [...shape],
          data: await file.readFloats(name),
        });
      return tensors;
    } finally {
      await file.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The bytes of the archive's weights; undefined if it is damaged or has none. */
async function weightsIn(archive: Uint8Array): Promise<Uint8Array | undefined> {
  try {
    const files = parseTar(await promisify(gunzip)(archive));
    return files.find(({ name }) => name.split('/').at(-1) === adapterWeightsName)?.data;
  } catch {
    return undefined;
  }
}
