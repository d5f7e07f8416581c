// The header of a safetensors file. The file contains the length of the JSON (8 bytes, little-endian), the JSON, and
// the data. The JSON maps names to dtype, shape and offsets. The checked conditions are those of the reference reader:
// no key occurs twice, sizes match shapes, and tensors cover the data without gap or overlap. Format:
// https://github.com/huggingface/safetensors#format
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';

/** Bytes per element, by dtype. */
export const dtypeBytes: Readonly<Record<string, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

/** Maximum bytes of a header, as in the reference reader. */
export const maxHeaderBytes = 100_000_000;

/** Type, shape and location of a tensor; `begin` and `end` are byte offsets in the file. */
export interface TensorInfo {
  name: string;
  dtype: string;
  shape: number[];
  elements: number;
  begin: number;
  end: number;
}

export interface SafetensorsHeader {
  tensors: Map<string, TensorInfo>;
  metadata: Record<string, string>;
}

/** Returns the UserError for a damaged weights file. */
export const broken = (file: string, what: string): UserError =>
  new UserError(`weights: ${file} ${what}: download or convert the file again`);

/**
 * Parses the JSON part of a header. `dataStart` is the byte offset of the data in the file, and `fileBytes` is the size
 * of the file. Throws a UserError that names the file, the tensor and the remedy.
 */
export function parseHeader(text: string, file: string, dataStart: number, fileBytes: number): SafetensorsHeader {
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    throw broken(file, 'has a header that is not JSON');
  }
  if (!isRecord(header)) throw broken(file, 'has a header that is not a map of tensors');
  const double = doubleKey(text);
  if (double !== undefined) throw broken(file, `has the key ${JSON.stringify(double)} twice in its header`);

  const metadata: Record<string, string> = {};
  const tensors: TensorInfo[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name !== '__metadata__') tensors.push(tensorInfo(name, entry, file, dataStart));
    else if (isRecord(entry) && Object.values(entry).every(value => typeof value === 'string'))
      Object.assign(metadata, entry);
    else throw broken(file, 'has __metadata__ that is not a map of texts');
  }
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let end = dataStart;
  for (const tensor of tensors) {
    if (tensor.begin !== end) {
      const how = tensor.begin < end ? 'overlaps the previous tensor' : 'leaves a gap after the previous tensor';
      throw broken(file, `has a tensor ${tensor.name} that ${how}`);
    }
    end = tensor.end;
  }
  if (end !== fileBytes) throw broken(file, `has ${fileBytes} bytes, but its header requires ${end}`);
  return { tensors: new Map(tensors.map(tensor => [tensor.name, tensor])), metadata };
}

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function tensorInfo(name: string, entry: unknown, file: string, dataStart: number): TensorInfo {
  const fail = (what: string): UserError => broken(file, `has a tensor ${name} ${what}`);
  if (!isRecord(entry)) throw fail('without dtype, shape and data_offsets');
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== 'string' || !Object.hasOwn(dtypeBytes, dtype))
    throw fail(`of the unknown dtype ${JSON.stringify(dtype)}`);
  if (!Array.isArray(shape) || !shape.every(isSize)) throw fail(`of the impossible shape ${JSON.stringify(shape)}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize) || offsets[0] > offsets[1])
    throw fail(`with the impossible data_offsets ${JSON.stringify(offsets)}`);
  const elements = shape.reduce((product: number, size: number) => product * size, 1);
  const bytes = offsets[1] - offsets[0];
  if (!Number.isSafeInteger(elements) || elements * dtypeBytes[dtype] !== bytes)
    throw fail(`of ${bytes} bytes, which does not match dtype ${dtype} and shape [${shape.join(', ')}]`);
  return { name, dtype, shape, elements, begin: dataStart + offsets[0], end: dataStart + offsets[1] };
}

/**
 * Returns a key that occurs twice in one object of a valid JSON text; undefined if there is none. JSON.parse would
 * silently use the last value.
 */
function doubleKey(text: string): string | undefined {
  const open: (Set<string> | null)[] = [];
  const token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;
  const colon = /\s*:/y;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [word] = match;
    if (word === '{') open.push(new Set());
    else if (word === '[') open.push(null);
    else if (word === '}' || word === ']') open.pop();
    else {
      const keys = open.at(-1);
      colon.lastIndex = token.lastIndex;
      if (!keys || !colon.test(text)) continue;
      const key = JSON.parse(word) as string;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}
