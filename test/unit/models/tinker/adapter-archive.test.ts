// Archives of adapters that a server sends: damaged, foreign, and larger unpacked than any adapter.
import { gzipSync } from 'node:zlib';
import { createTar } from 'nanotar';
import { expect, test } from 'vitest';
import { adapterTensors } from '../../../../extension/models/tinker/adapter-archive';
import { safetensorsParts } from '../../../../extension/models/weights/safetensors-writer';

const url = 'http://peer';
const archive = (files: Record<string, Uint8Array>) =>
  gzipSync(createTar(Object.entries(files).map(([name, data]) => ({ name, data }))));
const weights = Buffer.concat(
  safetensorsParts([{ name: 'base_model.model.a', shape: [2], data: Float32Array.of(1, 2) }]),
);

test('the adapter is read from any folder of the archive', async () => {
  const found = await adapterTensors(archive({ 'x/adapter_model.safetensors': weights }), url);
  expect(found).toEqual([{ name: 'a', dims: [2], data: Float32Array.of(1, 2) }]);
});

test.each([
  ['nothing in it', archive({ 'README.md': weights })],
  ['no archive', Buffer.from('<html>')],
])('%s: is refused', async (_, bytes) => {
  await expect(adapterTensors(bytes, url)).rejects.toThrow('has no adapter_model.safetensors');
});

test('unpacking stops at the limit', async () => {
  const bomb = archive({ 'adapter_model.safetensors': new Uint8Array(2 ** 20) });
  expect(bomb.length).toBeLessThan(2 ** 12);
  await expect(adapterTensors(bomb, url, 2 ** 16)).rejects.toThrow('is larger than 65536 bytes when unpacked');
});
