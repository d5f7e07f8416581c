// The engine in its worker thread, from the real bundle: results and both kinds of error are transferred, calls run in
// order, the caller's thread stays free, and a dying worker fails every pending call.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import { startEngine } from '../../../extension/engine/remote-engine';
import type { RemoteEngine } from '../../../extension/engine/remote-engine';
import { PolicyEngine } from '../../../extension/models/policy-engine';
import { plainLoad, plainSampling } from '../../support/small-models';

const bundle = mkdtempSync(join(tmpdir(), 'ragen-engine-'));
const workerFile = join(bundle, 'engine-worker.cjs');
const options = plainLoad;
const sampling = { ...plainSampling, max_new_tokens: 6 };
const rows = ['a', 'b'].map((row, seed) => ({ row, append: [4, 8, 15], seed }));
const engines: RemoteEngine[] = [];
const start = (file = workerFile): RemoteEngine => {
  const engine = startEngine(file);
  engines.push(engine);
  return engine;
};

beforeAll(async () => {
  await build({
    entryPoints: ['extension/models/engine-worker.ts'],
    outfile: workerFile,
    define: { 'import.meta.url': '__importMetaUrl' },
    banner: { js: "const __importMetaUrl = require('node:url').pathToFileURL(__filename).href;" },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    loader: { '.proto': 'text', '.wasm': 'binary' },
    external: ['onnxruntime-node'],
    logLevel: 'warning',
  });
  symlinkSync(resolve('node_modules'), join(bundle, 'node_modules'), 'junction');
});
afterEach(() => Promise.all(engines.splice(0).map(engine => engine.stop())));
afterAll(() => rmSync(bundle, { recursive: true, force: true }));

it('gives the same results as the engine in this thread, and reports progress', async () => {
  const [remote, local] = [start(), new PolicyEngine()];
  const received: number[] = [];
  remote.onTokens = sampled => received.push(sampled);
  expect(await remote.load(options)).toEqual(await local.load(options));
  expect(await remote.generate(rows, sampling)).toEqual(await local.generate(rows, sampling));
  expect(received.at(-1)).toBe(12);
  expect(await remote.parameters()).toEqual(await local.parameters());
});

it('runs calls in the order in which they were made', async () => {
  const engine = start();
  const order: string[] = [];
  await Promise.all([
    engine.load(options).then(() => order.push('load')),
    engine.generate(rows, sampling).then(() => order.push('generate')),
    engine.release(['a', 'b']).then(() => order.push('release')),
  ]);
  expect(order).toEqual(['load', 'generate', 'release']);
});

it('runs generations concurrently, and other calls after them', async () => {
  const engine = start();
  await engine.load(options);
  const order: string[] = [];
  await Promise.all([
    engine.generate(rows, { ...sampling, max_new_tokens: 50 }).then(() => order.push('generate')),
    engine.release(['nobody']).then(() => order.push('release')),
    engine.parameters().then(() => order.push('parameters')),
    engine.generate(rows, sampling).then(() => order.push('later')),
  ]);
  expect(order).toEqual(['release', 'generate', 'parameters', 'later']);
});

it('transfers a UserError as its message, and an internal error with its stack', async () => {
  const engine = start();
  const mistake = await engine.load({ ...options, modelFolder: '/nowhere' }).catch((error: Error) => error);
  expect(mistake).toBeInstanceOf(UserError);
  expect((mistake as Error).message).toMatch(/^\/nowhere: cannot read config\.json \(ENOENT\)/);
  const defect = await engine.generate(rows, sampling).catch((error: Error) => error);
  expect(defect).not.toBeInstanceOf(UserError);
  expect((defect as Error).message).toBe('engine: no model is loaded');
  expect((defect as Error).stack).toContain('engine-worker.cjs');
  expect(await engine.load(options)).toMatchObject({ maxPositions: 64 });
});

it('leaves the caller’s thread free while it runs', async () => {
  const engine = start();
  await engine.load(options);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  const many = Array.from({ length: 64 }, (_, seed) => ({ row: `r${seed}`, append: [seed % 60], seed }));
  await engine.generate(many, { ...sampling, max_new_tokens: 50 });
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(5);
});

it('ends running calls with RunStopped when stopped, and fails later calls', async () => {
  const engine = start();
  await engine.load(options);
  const many = Array.from({ length: 64 }, (_, seed) => ({ row: `r${seed}`, append: [seed % 60], seed }));
  const waiting = engine.generate(many, { ...sampling, max_new_tokens: 50 }).catch((error: Error) => error.message);
  await engine.stop();
  expect(await waiting).toBe('the run was asked to stop');
  await expect(engine.release([])).rejects.toThrow(/its worker thread/);
});

it('fails every call when the worker cannot start or throws', async () => {
  await expect(start(join(bundle, 'missing.cjs')).load(options)).rejects.toThrow(/missing\.cjs/);
  const file = join(bundle, 'broken.cjs');
  writeFileSync(
    file,
    "require('node:worker_threads').parentPort.on('message', () => { throw new Error('broken inside'); });",
  );
  const engine = start(file);
  const [first, second] = await Promise.allSettled([engine.load(options), engine.release([])]);
  for (const call of [first, second])
    expect(call).toMatchObject({ status: 'rejected', reason: { message: 'broken inside' } });
});

it('reports an exhausted heap in a sentence', async () => {
  const file = join(bundle, 'hungry.cjs');
  writeFileSync(
    file,
    "require('node:worker_threads').parentPort.on('message', () => { const kept = []; for (;;) kept.push(Array(1e4).fill({})); });",
  );
  setFlagsFromString('--max-old-space-size=32'); // applies to heaps created afterwards
  const engine = start(file);
  const error = await engine.load(options).catch((thrown: Error) => thrown);
  setFlagsFromString('--max-old-space-size=0');
  expect(error).toBeInstanceOf(UserError);
  expect((error as Error).message).toMatch(
    /^engine: the JavaScript heap of its worker thread is full: lower .* NODE_OPTIONS=/,
  );
});
