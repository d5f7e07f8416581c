// A safetensors file with an arbitrary header yields tensors that fit the file, or a UserError. Written tensors are
// read back unchanged.
import fc from 'fast-check';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { SafetensorsFile } from '../../../../extension/models/weights/safetensors';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { dtypeBytes } from '../../../../extension/models/weights/safetensors-header';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-weights-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
const file = (): string => join(folder, 'model.safetensors');

/**
 * Opens a file and reads all its tensors. Asserts that the tensors of an opened file lie inside it and cover its data.
 */
async function outcome(bytes: Uint8Array): Promise<'opened' | 'refused'> {
  writeFileSync(file(), bytes);
  let weights: SafetensorsFile;
  try {
    weights = await SafetensorsFile.open(file());
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.message).toMatch(/^(weights|store): .*: /s);
    return 'refused';
  }
  for (const tensor of weights.tensors.values()) {
    expect(tensor.end).toBeLessThanOrEqual(bytes.length);
    expect(tensor.end - tensor.begin).toBe(tensor.elements * dtypeBytes[tensor.dtype]);
    if (['F32', 'F16', 'BF16'].includes(tensor.dtype))
      expect(await weights.readFloats(tensor.name)).toHaveLength(tensor.elements);
  }
  await weights.close();
  return 'opened';
}

const framed = (header: string, data: Uint8Array): Buffer => {
  const text = Buffer.from(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, data]);
};
const bytes = (maxLength: number) => fc.uint8Array({ maxLength });

test('any bytes open or raise a UserError', async () => {
  await fc.assert(
    fc.asyncProperty(bytes(64), async content => void (await outcome(content))),
    { numRuns: 200 },
  );
});

test('almost valid headers open or raise a UserError', async () => {
  const size = fc.oneof(fc.nat(8), fc.nat(8), fc.integer(), fc.double());
  const tensor = fc.record(
    {
      dtype: fc.constantFrom('F32', 'F16', 'I8', 'X'),
      shape: fc.oneof(fc.array(fc.nat(3), { maxLength: 3 }), fc.array(size, { maxLength: 3 })),
      data_offsets: fc.oneof(fc.tuple(fc.nat(8), fc.nat(32)), fc.jsonValue()),
    },
    { requiredKeys: [] },
  );
  const header = fc.dictionary(
    fc.oneof(fc.constantFrom('a', 'b', '__metadata__', '__proto__'), fc.string()),
    fc.oneof(tensor, tensor, fc.jsonValue()),
    { maxKeys: 3 },
  );
  await fc.assert(
    fc.asyncProperty(header, bytes(32), async (map, data) => void (await outcome(framed(JSON.stringify(map), data)))),
    { numRuns: 300 },
  );
});

test('a valid file with one byte changed, or cut anywhere, opens or raises a UserError', async () => {
  await writeSafetensors(file(), [
    { name: 'a', shape: [2], data: Float32Array.of(1, 2) },
    { name: 'b', shape: [1, 1], data: Float32Array.of(3) },
  ]);
  const good = readFileSync(file());
  expect(await outcome(good)).toBe('opened');
  for (let length = 0; length < good.length; length++) expect(await outcome(good.subarray(0, length))).toBe('refused');
  await fc.assert(
    fc.asyncProperty(fc.nat(good.length - 1), fc.nat(255), async (at, value) => {
      const changed = Buffer.from(good);
      changed[at] = value;
      await outcome(changed);
    }),
    { numRuns: 200 },
  );
});

test('written tensors are read back unchanged', async () => {
  const tensor = fc.record({
    name: fc.string({ minLength: 1 }).filter(name => name !== '__metadata__'),
    data: fc.float32Array({ maxLength: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(tensor, { maxLength: 4, selector: ({ name }) => name }), async tensors => {
      await writeSafetensors(
        file(),
        tensors.map(({ name, data }) => ({ name, shape: [data.length], data })),
      );
      const weights = await SafetensorsFile.open(file());
      for (const { name, data } of tensors) expect(await weights.readFloats(name)).toEqual(data);
      await weights.close();
    }),
    { numRuns: 100 },
  );
});
