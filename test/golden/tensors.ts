// Reads a small float32 .safetensors file for tests, independently of the product's reader.
import { readFileSync } from 'node:fs';

export function tensorsOf(file: string): Map<string, { dims: number[]; data: Float32Array }> {
  const bytes = readFileSync(file);
  const headerSize = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + headerSize).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const tensors = new Map<string, { dims: number[]; data: Float32Array }>();
  for (const [name, { shape, data_offsets }] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const [from, to] = data_offsets.map(offset => 8 + headerSize + offset);
    tensors.set(name, { dims: shape, data: new Float32Array(bytes.buffer.slice(bytes.byteOffset + from, bytes.byteOffset + to)) });
  }
  return tensors;
}
