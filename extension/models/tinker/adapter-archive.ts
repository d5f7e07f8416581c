// Reads the adapter from a checkpoint archive that a server has sent. The archive is a tar.gz file that contains an
// adapter in PEFT format.
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

/** Maximum bytes of an unpacked archive. Node 20 has no larger buffers. */
const unpackedBytes = 2 ** 32;

/**
 * Returns the tensors of the archive's adapter. PEFT's prefix is removed from their names.
 * @param most maximum bytes of the unpacked archive
 * @throws UserError if the archive contains no adapter weights, is damaged or is too large
 */
export async function adapterTensors(archive: Uint8Array, url: string, most = unpackedBytes): Promise<NamedTensor[]> {
  const data = await weightsIn(archive, most, url);
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

/**
 * Returns the bytes of the adapter's weights file; undefined if the archive is damaged or does not contain this file.
 */
async function weightsIn(archive: Uint8Array, most: number, url: string): Promise<Uint8Array | undefined> {
  try {
    const files = parseTar(await promisify(gunzip)(archive, { maxOutputLength: most }));
    return files.find(({ name }) => name.split('/').at(-1) === adapterWeightsName)?.data;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw new UserError(
      `engine: the checkpoint archive of ${url} is larger than ${most} bytes when unpacked: lower lora.rank`,
    );
  }
}
