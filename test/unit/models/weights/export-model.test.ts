// Exported folders: the same values in the requested type and files, or one sentence and nothing on the disk.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { exportModel } from '../../../../extension/models/weights/export-model';
import type { ExportRequest } from '../../../../extension/models/weights/export-model';
import { readDecoder } from '../../../../extension/models/weights/model-folder';
import { fromBrain, toBrain } from '../../../../extension/engine/half-precision';
import { Weights as TensorFiles } from '../../../../extension/models/weights/safetensors';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { tensorsOf } from '../../../golden/tensors';
import { failingFiles } from '../../../support/failing-files';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenFolder, goldenWeights, relativeError } from '../../../support/small-models';

const folder = temporaryFolder();
const path = (name: string): string => join(folder(), name);
const request = (change: Partial<ExportRequest> = {}): ExportRequest => ({
  model: goldenFolder('qwen2'),
  format: 'safetensors',
  out: path('out'),
  maxShardBytes: 1e9,
  ...change,
});
const text = (name: string): string => readFileSync(path(join('out', name)), 'utf8');

describe('without an adapter', () => {
  test.each([
    ['qwen2', 'F32', 'float32'],
    ['qwen3', 'BF16', 'bfloat16'],
    ['qwen2-yarn', 'F16', 'float16'],
  ])('%s as %s keeps its bits', async (family, dtype, name) => {
    const progress: number[] = [];
    const exported = await exportModel(
      request({ model: goldenFolder(family), onProgress: (bytes, total) => progress.push(bytes / total) }),
    );
    expect(exported).toMatchObject({ folder: path('out'), dtype, mergedLayers: 0 });
    expect(exported.files).toEqual(['model.safetensors', 'config.json', 'generation_config.json']);
    expect(readdirSync(path('out')).sort()).toEqual([...exported.files].sort());
    expect(text('config.json')).toBe(readFileSync(join(goldenFolder(family), 'config.json'), 'utf8'));
    expect(JSON.parse(text('config.json'))).toMatchObject({ dtype: name });
    const [before, after] = [await readDecoder(goldenFolder(family)), await readDecoder(path('out'))];
    expect(after.weights.flat).toEqual(before.weights.flat);
    expect(exported.parameters).toBe(before.weights.count);
    expect(progress.at(-1)).toBe(1);
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
  });

  test('another type is written into config.json under its present key, and nothing else changes there', async () => {
    const model = path('model');
    cpSync(goldenFolder('qwen2'), model, { recursive: true });
    const config = readFileSync(join(model, 'config.json'), 'utf8');
    expect(config).toContain('"attention_dropout": 0.0');
    for (const [i, [own, expected]] of [
      ['"dtype": "float32"', '"dtype": "bfloat16"'],
      ['"torch_dtype": null', '"torch_dtype": "bfloat16"'],
      ['"rope_theta": 1e4', '"rope_theta": 1e4'],
    ].entries()) {
      writeFileSync(join(model, 'config.json'), config.replace('"dtype": "float32"', own));
      await exportModel(request({ model, out: path(`out${i}`), dtype: 'BF16' }));
      const written = readFileSync(path(`out${i}/config.json`), 'utf8');
      const added = i === 2 ? written.replace('\n  "torch_dtype": "bfloat16",', '') : written;
      expect(added).not.toBe(i === 2 ? written : config);
      expect(added).toBe(config.replace('"dtype": "float32"', expected));
    }
  });

  test('the tokenizer is copied, optimizer states are not', async () => {
    const model = path('model');
    cpSync(goldenFolder('qwen2'), model, { recursive: true });
    for (const name of [
      'tokenizer.json',
      'merges.txt',
      'chat_template.jinja',
      'actor.m',
      'checkpoint.json',
      'README.md',
    ])
      writeFileSync(join(model, name), name);
    const { files } = await exportModel(request({ model }));
    expect(files.slice(3)).toEqual(['tokenizer.json', 'chat_template.jinja', 'merges.txt']);
    expect(text('merges.txt')).toBe('merges.txt');
  });

  test('shards are written with an index', async () => {
    const { files } = await exportModel(request({ maxShardBytes: 10_000 }));
    const shards = files.filter(name => name.startsWith('model-'));
    expect(shards.map(name => name.slice(0, 11))).toEqual(shards.map((_, i) => `model-0000${i + 1}`));
    for (const name of shards) expect(statSync(path(join('out', name))).size).toBeLessThan(11_500);
    expect(shards.length).toBeGreaterThan(4);
    expect((await readDecoder(path('out'))).weights.flat).toEqual(goldenWeights('qwen2').flat);
  });
});

describe('with an adapter', () => {
  const adapter = 'test/golden/lora/all-linear';
  const golden = tensorsOf(join(adapter, 'golden.safetensors'));
  const read = async (name: string): Promise<Float32Array> => {
    const files = await TensorFiles.open(path('out'));
    try {
      return await files.readFloats(name);
    } finally {
      await files.close();
    }
  };

  test.each([undefined, 1, 24, 100])('its merged weights equal peft’s, %s values at a time', async blockElements => {
    const exported = await exportModel(request({ adapter, blockElements }));
    expect(exported).toMatchObject({ dtype: 'F32', mergedLayers: 14 });
    const { weights } = await readDecoder(path('out'));
    const base = goldenWeights('qwen2');
    for (const { name } of weights.specs) {
      const merged = golden.get(`merged.${name}`)?.data;
      if (merged) expect(relativeError(weights.view(name), merged)).toBeLessThan(1e-6);
      else expect(weights.view(name)).toEqual(base.view(name));
    }
  });

  test('half precision rounds once, after merging', async () => {
    await exportModel(request({ adapter, out: path('whole') }));
    const whole = (await readDecoder(path('whole'))).weights.view('model.layers.1.mlp.up_proj.weight');
    await exportModel(request({ adapter, dtype: 'BF16' }));
    const rounded = new Float32Array(whole.length);
    fromBrain(toBrain(whole), rounded, 0);
    expect(await read('model.layers.1.mlp.up_proj.weight')).toEqual(rounded);
    expect(JSON.parse(text('config.json'))).toMatchObject({ dtype: 'bfloat16' });
  });

  test('an adapter for another model exports nothing', async () => {
    await expect(exportModel(request({ adapter, model: goldenFolder('llama') }))).rejects.toThrow(
      /but for test\/golden\/llama at rank 4 the shape must be/,
    );
    expect(readdirSync(folder())).toEqual([]);
  });
});

describe('a failed export', () => {
  test('a non-empty folder or a file is refused, an empty folder is accepted', async () => {
    mkdirSync(path('out'));
    writeFileSync(path('out/mine'), '');
    await expect(exportModel(request())).rejects.toThrow(
      /^export: .*\/out is not empty: give another folder with --out/,
    );
    expect(readdirSync(path('out'))).toEqual(['mine']);
    await expect(exportModel(request({ out: path('out/mine') }))).rejects.toThrow(
      /mine is a file: give another folder/,
    );
    mkdirSync(path('empty'));
    for (const out of [path('empty'), path('new/deep')]) {
      await exportModel(request({ out }));
      expect(JSON.parse(readFileSync(join(out, 'config.json'), 'utf8'))).toMatchObject({ model_type: 'qwen2' });
    }
  });

  test('weights that are not finite, or beyond the requested type, are refused', async () => {
    const model = path('model');
    cpSync(goldenFolder('qwen2'), model, { recursive: true });
    const write = (value: number): Promise<void> => {
      const weights = goldenWeights('qwen2');
      weights.view('model.norm.weight')[5] = value;
      return writeSafetensors(
        join(model, 'model.safetensors'),
        weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) })),
      );
    };
    await write(NaN);
    await expect(exportModel(request({ model }))).rejects.toThrow(
      /model: the tensor model\.norm\.weight is damaged \(element 5 is NaN\): download the weights again$/,
    );
    await write(-65520);
    await expect(exportModel(request({ model, dtype: 'F16' }))).rejects.toThrow(
      /model\.norm\.weight has -65520 at element 5, which is too large for float16: export with --dtype bf16$/,
    );
    expect(readdirSync(folder())).toEqual(['model']);
    await write(-65519);
    await exportModel(request({ model, dtype: 'F16' }));
    await write(3.4e38);
    await expect(exportModel(request({ model, dtype: 'BF16', out: path('out2') }))).rejects.toThrow(
      /too large for bfloat16: export with --dtype f32$/,
    );
  });

  test('a stop in the middle leaves nothing', async () => {
    const stop = new AbortController();
    const stopped = exportModel(request({ signal: stop.signal, onProgress: () => stop.abort() }));
    await expect(stopped).rejects.toThrow(/^export: the export was cancelled, and nothing was written to /);
    expect(readdirSync(folder())).toEqual([]);
  });

  test('a full disk at any write leaves nothing', async () => {
    let at = 0;
    while (!existsSync(path('out'))) {
      expect(readdirSync(folder())).toEqual([]);
      const fs = failingFiles({ calls: 0, at: ++at, after: 'works' });
      await expect(exportModel(request(), fs)).rejects.toThrow(/\(ENOSPC\): the disk is full/);
    }
    expect(at).toBeGreaterThan(15);
    expect((await readDecoder(path('out'))).weights.flat).toEqual(goldenWeights('qwen2').flat);
  });
});
