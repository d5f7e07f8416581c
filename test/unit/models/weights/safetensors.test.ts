// Weights on disk: written tensors are read back, and every broken file has an error that names its fault.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SafetensorsFile, Weights } from '../../../../extension/models/weights/safetensors';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { failingFiles } from '../../../support/failing-files';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const path = (name = 'model.safetensors'): string => join(folder(), name);

/** Writes a file with this header and data, valid or not, and returns its path. */
function forge(header: string | object, data: Uint8Array | number = 0, name?: string, length?: bigint): string {
  const text = Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(length ?? BigInt(text.length));
  writeFileSync(path(name), Buffer.concat([prefix, text, typeof data === 'number' ? Buffer.alloc(data) : data]));
  return path(name);
}

async function read(file: string, tensor: string, range?: { from: number; to: number }): Promise<Float32Array> {
  const weights = await SafetensorsFile.open(file);
  try {
    return await weights.readFloats(tensor, range);
  } finally {
    await weights.close();
  }
}

test('tensors are read back bit by bit, completely or in part', async () => {
  const data = Float32Array.from({ length: 12 }, (_, i) => Math.fround(Math.sin(i) * 10 ** (i - 6)));
  await writeSafetensors(path(), [
    { name: 'b', shape: [3, 4], data },
    { name: 'a', shape: [], data: Float32Array.of(-0) },
    { name: 'empty', shape: [0, 7], data: new Float32Array() },
  ]);
  const file = await SafetensorsFile.open(path());
  expect([...file.tensors.values()].map(({ name, shape, dtype }) => [name, shape, dtype])).toEqual(
    expect.arrayContaining([
      ['b', [3, 4], 'F32'],
      ['a', [], 'F32'],
      ['empty', [0, 7], 'F32'],
    ]),
  );
  expect(file.metadata).toEqual({ format: 'pt' });
  expect(await file.readFloats('b')).toEqual(data);
  expect(await file.readFloats('b', { from: 4, to: 8 })).toEqual(data.slice(4, 8));
  expect(Object.is((await file.readFloats('a'))[0], -0)).toBe(true);
  expect(await file.readFloats('empty')).toEqual(new Float32Array());
  await expect(file.readFloats('c')).rejects.toThrow(
    /has no tensor c: use weights of the architecture that config\.json names/,
  );
  await expect(file.readFloats('b', { from: 4, to: 13 })).rejects.toThrow(RangeError);
  await file.close();
  expect(readFileSync(path()).readBigUInt64LE() % 8n).toBe(0n);
});

test('all half-precision values convert exactly', async () => {
  const halves = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
  const header = {
    h: { dtype: 'F16', shape: [65536], data_offsets: [0, 131072] },
    b: { dtype: 'BF16', shape: [65536], data_offsets: [131072, 262144] },
  };
  const file = forge(header, Buffer.concat([Buffer.from(halves.buffer), Buffer.from(halves.buffer)]));
  // IEEE 754 by definition: sign, exponent and mantissa, as a sum of powers of two.
  const half = (bits: number): number => {
    const [sign, exponent, mantissa] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
    if (exponent === 31) return mantissa ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + mantissa / 1024) : 2 ** -14 * (mantissa / 1024));
  };
  const brain = (bits: number): number => {
    const [sign, exponent, mantissa] = [bits >> 15 ? -1 : 1, (bits >> 7) & 255, bits & 127];
    if (exponent === 255) return mantissa ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 127) * (1 + mantissa / 128) : 2 ** -126 * (mantissa / 128));
  };
  const [h, b] = [await read(file, 'h'), await read(file, 'b')];
  expect([...h].every((value, i) => Object.is(value, half(i)))).toBe(true);
  expect([...b].every((value, i) => Object.is(value, brain(i)))).toBe(true);
  expect(await read(file, 'h', { from: 15360, to: 15361 })).toEqual(Float32Array.of(1));
});

test('a conversion longer than its buffer is correct', async () => {
  const count = 3_000_000;
  const data = Buffer.alloc(count * 2);
  for (let i = 0; i < count; i++) data.writeUInt16LE(0x3f80 + (i % 7), i * 2);
  const file = forge({ t: { dtype: 'BF16', shape: [count], data_offsets: [0, count * 2] } }, data);
  const floats = await read(file, 't');
  expect([0, 2_097_151, 2_097_152, count - 1].map(i => floats[i])).toEqual(
    [0, 2_097_151, 2_097_152, count - 1].map(i => 1 + (i % 7) / 128),
  );
});

describe('a broken file', () => {
  const t = (over: object = {}): object => ({ dtype: 'F32', shape: [2], data_offsets: [0, 8], ...over });
  test.each<[string, string | object, number, RegExp]>([
    ['not JSON', '{"a":', 0, /has a header that is not JSON: download or convert the file again$/],
    ['a list', '[]', 0, /not a map of tensors/],
    [
      'a double key',
      '{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}, "\\u0074" : {}}',
      8,
      /has the key "t" twice/,
    ],
    [
      'a double key within a tensor',
      '{"t":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}}',
      8,
      /has the key "shape" twice/,
    ],
    ['no tensor', { t: 3 }, 0, /tensor t without dtype/],
    ['an unknown dtype', { t: t({ dtype: 'F4' }) }, 8, /tensor t of the unknown dtype "F4"/],
    ['a dtype of the prototype', { t: t({ dtype: 'constructor' }) }, 8, /unknown dtype/],
    ['a negative shape', { t: t({ shape: [-2] }) }, 8, /impossible shape \[-2\]/],
    ['a fractional shape', { t: t({ shape: [0.5] }) }, 8, /impossible shape/],
    ['an overflowing shape', { t: t({ shape: [2 ** 40, 2 ** 40] }) }, 8, /does not match dtype F32/],
    ['offsets that run backwards', { t: t({ data_offsets: [8, 0] }) }, 8, /impossible data_offsets/],
    ['offsets that are no pair', { t: t({ data_offsets: [0] }) }, 8, /impossible data_offsets/],
    [
      'a size that does not fit',
      { t: t({ shape: [3] }) },
      8,
      /of 8 bytes, which does not match dtype F32 and shape \[3\]/,
    ],
    ['an overlap', { t: t(), u: t({ data_offsets: [4, 12] }) }, 12, /tensor u that overlaps/],
    ['a gap', { t: t(), u: t({ data_offsets: [12, 20] }) }, 20, /tensor u that leaves a gap/],
    ['data missing', { t: t() }, 7, /bytes, but its header requires/],
    ['data left over', { t: t() }, 9, /bytes, but its header requires/],
    ['metadata of another kind', { __metadata__: { a: 1 } }, 0, /__metadata__/],
  ])('is refused: %s', async (_, header, data, message) => {
    const file = forge(header, data);
    await expect(SafetensorsFile.open(file)).rejects.toThrow(message);
    await expect(SafetensorsFile.open(file)).rejects.toThrow(`weights: ${file}`);
  });

  test('an impossible length is refused', async () => {
    for (const length of [3n, 100n, 2n ** 63n, 2n ** 64n - 1n])
      await expect(SafetensorsFile.open(forge('{}', 0, undefined, length))).rejects.toThrow(
        length === 3n ? /declares/ : /declares a header of \d+ bytes/,
      );
    writeFileSync(path(), 'abc');
    await expect(SafetensorsFile.open(path())).rejects.toThrow(/has only 3 bytes/);
    await expect(SafetensorsFile.open(path('none'))).rejects.toThrow(/store: cannot read .*none \(ENOENT\)/);
  });

  test('integers are refused as weights', async () => {
    const file = forge({ t: { dtype: 'I64', shape: [1], data_offsets: [0, 8] } }, 8);
    await expect(read(file, 't')).rejects.toThrow(
      /has the tensor t in I64, which cannot be read as weights: convert it to F32, F16 or BF16/,
    );
  });

  test('names of prototype properties are ordinary names', async () => {
    await writeSafetensors(path(), [{ name: '__proto__', shape: [1], data: Float32Array.of(5) }]);
    expect(await read(path(), '__proto__')).toEqual(Float32Array.of(5));
  });
});

describe('model folders', () => {
  const shard = (name: string, tensor: string, value: number): Promise<void> =>
    writeSafetensors(path(name), [{ name: tensor, shape: [1], data: Float32Array.of(value) }]);
  const index = (map: object): void =>
    writeFileSync(
      path('model.safetensors.index.json'),
      JSON.stringify({ metadata: { total_size: 8 }, weight_map: map }),
    );

  test('are read from one file', async () => {
    await shard('model.safetensors', 'a', 1);
    const weights = await Weights.open(folder());
    expect(weights.names).toEqual(['a']);
    expect(await weights.readFloats('a')).toEqual(Float32Array.of(1));
    await weights.close();
  });

  test('are read from shards with an index', async () => {
    await shard('model-00001-of-00002.safetensors', 'a', 1);
    await shard('model-00002-of-00002.safetensors', 'b', 2);
    index({ a: 'model-00001-of-00002.safetensors', b: 'model-00002-of-00002.safetensors' });
    const weights = await Weights.open(folder());
    expect(weights.info('b')).toMatchObject({ shape: [1], dtype: 'F32' });
    expect(weights.info('c')).toBeUndefined();
    expect(await weights.readFloats('b')).toEqual(Float32Array.of(2));
    await expect(weights.readFloats('c')).rejects.toThrow(/the model has no tensor c/);
    await weights.close();
  });

  test('are refused when the index is wrong', async () => {
    await shard('model-1.safetensors', 'a', 1);
    index({ b: 'model-1.safetensors' });
    await expect(Weights.open(folder())).rejects.toThrow(
      /says that the tensor b is in model-1\.safetensors, but model-1\.safetensors does not contain this tensor/,
    );
    for (const name of ['../model-1.safetensors', '/etc/passwd', 'model-1.bin', 3]) {
      index({ a: name });
      await expect(Weights.open(folder())).rejects.toThrow(/does not name a file in the same folder for the tensor a/);
    }
    index({ a: 'model-2.safetensors' });
    await expect(Weights.open(folder())).rejects.toThrow(
      /index\.json names the shard model-2\.safetensors, which is not in the same folder: download or convert the file again/,
    );
    writeFileSync(path('model.safetensors.index.json'), '[]');
    await expect(Weights.open(folder())).rejects.toThrow(/has no weight_map/);
    writeFileSync(path('model.safetensors.index.json'), '{');
    await expect(Weights.open(folder())).rejects.toThrow(/is not JSON/);
  });

  test('are refused without weights', async () => {
    mkdirSync(path('empty'));
    await expect(Weights.open(path('empty'))).rejects.toThrow(
      /has neither model\.safetensors nor model\.safetensors\.index\.json: choose a folder/,
    );
  });
});

test('a full disk leaves the old weights and nothing else', async () => {
  const tensor = (value: number) => [{ name: 'a', shape: [1], data: Float32Array.of(value) }];
  await writeSafetensors(path(), tensor(1));
  const failure = { calls: 0, at: 3, after: 'works' as const };
  await expect(writeSafetensors(path(), tensor(2), {}, failingFiles(failure))).rejects.toThrow(
    /\(ENOSPC\): the disk is full: free space$/,
  );
  expect(await read(path(), 'a')).toEqual(Float32Array.of(1));
  expect(readdirSync(folder())).toEqual(['model.safetensors']);
  await expect(writeSafetensors(path(), [...tensor(1), ...tensor(2)])).rejects.toThrow(RangeError);
});
