// The exported ONNX model, run from its folder as by any other runtime: transformers' logits, with and without padding.
import { join } from 'node:path';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { afterEach, describe, expect, test } from 'vitest';
import { exportModel } from '../../../../extension/models/weights/export-model';
import { tensorsOf } from '../../../golden/tensors';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenFolder, relativeError } from '../../../support/small-models';

const folder = temporaryFolder();
let session: InferenceSession;
afterEach(() => session.release());

async function open(model: string, change: Partial<Parameters<typeof exportModel>[0]> = {}): Promise<void> {
  const out = join(folder(), 'out');
  const { files } = await exportModel({ model, format: 'onnx', out, maxShardBytes: 1e9, ...change });
  expect(files).toContain('model.onnx');
  session = await InferenceSession.create(join(out, 'model.onnx'), { logSeverityLevel: 3 });
  expect([...session.inputNames].sort()).toEqual(['attention_mask', 'input_ids', 'position_ids']);
  expect(session.outputNames).toEqual(['logits']);
}

async function logits(ids: number[][], mask: number[][], positions: number[][]): Promise<Float32Array> {
  const tensor = (rows: number[][]): Tensor =>
    new Tensor('int64', BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0].length]);
  const feeds = { input_ids: tensor(ids), attention_mask: tensor(mask), position_ids: tensor(positions) };
  return (await session.run(feeds)).logits.data as Float32Array;
}

const golden = (file: string) => {
  const tensors = tensorsOf(file);
  const { dims, data } = tensors.get('logits')!;
  return { vocab: dims[2], expected: data };
};
const rowsOf = (family: string): number[][] => {
  const { dims, data } = tensorsOf(join(goldenFolder(family), 'golden.safetensors')).get('ids')!;
  return Array.from({ length: dims[0] }, (_, i) => [...data.subarray(i * dims[1], (i + 1) * dims[1])]);
};

const onesOf = (rows: number[][]): number[][] => rows.map(row => row.map(() => 1));
const placesOf = (rows: number[][]): number[][] => rows.map(row => [...row.keys()]);

describe.each(['qwen2', 'llama', 'qwen3', 'llama3', 'qwen2-yarn'])('%s', family => {
  const ids = rowsOf(family);
  const { vocab, expected } = golden(join(goldenFolder(family), 'golden.safetensors'));

  test('its logits equal those of transformers', async () => {
    await open(goldenFolder(family));
    const got = await logits(ids, onesOf(ids), placesOf(ids));
    expect(relativeError(got, expected)).toBeLessThan(1e-5);
  });

  test('padding on either side does not change its logits', async () => {
    await open(goldenFolder(family));
    const padding = [3, 0, 1];
    const padded = <T>(rows: T[][], pad: T, left: boolean): T[][] =>
      rows.map((row, i) => {
        const before = Array<T>(left ? padding[i] : 0).fill(pad);
        return [...before, ...row, ...Array<T>(3 - before.length).fill(pad)];
      });
    for (const left of [true, false]) {
      const got = await logits(padded(ids, 5, left), padded(onesOf(ids), 0, left), padded(placesOf(ids), 0, left));
      const t = ids[0].length;
      for (const [i] of ids.entries()) {
        const first = (i * (t + 3) + (left ? padding[i] : 0)) * vocab;
        const own = expected.subarray(i * t * vocab, (i + 1) * t * vocab);
        expect(relativeError(got.subarray(first, first + t * vocab), own)).toBeLessThan(1e-5);
      }
    }
  });
});

test('an adapter exports in half precision and shards', async () => {
  const adapter = 'test/golden/lora/all-linear';
  await open(goldenFolder('qwen2'), { adapter, dtype: 'F16', maxShardBytes: 5000 });
  const ids = rowsOf('qwen2');
  const got = await logits(ids, onesOf(ids), placesOf(ids));
  const error = relativeError(got, golden(join(adapter, 'golden.safetensors')).expected);
  expect(error).toBeLessThan(3e-3);
  expect(error).toBeGreaterThan(1e-6); // the weights were rounded
});
