// Calls between threads with real workers: results, errors, transferred buffers, and a worker that ends.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { WorkerCalls, type ErrorCodec } from '../../../extension/node/thread-calls';
import { UserError } from '../../../extension/common/user-error';

interface Remote {
  add(a: number, b: number): number;
  fail(message: string): void;
  unclonable(): unknown;
  buffers(moved: boolean): { half: Float32Array; rest: Uint8Array[] };
  /** Byte lengths, in the worker, of the last result of `buffers`. */
  held(): number[];
  count(to: number): void;
  die(code: number): Promise<never>;
}
const code = `
import { parentPort } from 'node:worker_threads';
import { serveCalls, transferred } from ${JSON.stringify(join(process.cwd(), 'extension/node/thread-calls'))};
let last;
const report = serveCalls(parentPort, {
  add: (a, b) => a + b,
  fail(message) { throw new TypeError(message); },
  unclonable: () => () => 1,
  buffers(moved) {
    const shared = new Float32Array(4).fill(1);
    last = { half: shared, rest: [new Uint8Array(shared.buffer), new Uint8Array(2).fill(7)] };
    return moved ? transferred(last) : last;
  },
  held: () => [last.half, ...last.rest].map(({ byteLength }) => byteLength),
  count(to) { for (let i = 1; i <= to; i++) report('counted', i); },
  die: async code => { setTimeout(() => process.exit(code)); return new Promise(() => {}); },
}, process.env.CODED && { encode: ({ name, message }) => ({ name, message }), decode: () => new Error() });
`;
const folder = mkdtempSync(join(tmpdir(), 'ragen-threads-'));
const file = join(folder, 'worker.cjs');
const workers: Worker[] = [];
function start(functions: object = {}, errors?: ErrorCodec): { calls: WorkerCalls<Remote>; worker: Worker } {
  const worker = new Worker(file, { env: errors ? { CODED: '1' } : {} });
  workers.push(worker);
  return { calls: new WorkerCalls<Remote>(worker, functions, errors), worker };
}

beforeAll(async () => {
  writeFileSync(join(folder, 'worker.ts'), code);
  const options = { bundle: true, platform: 'node', format: 'cjs', target: 'node20' } as const;
  await build({ entryPoints: [join(folder, 'worker.ts')], outfile: file, ...options });
});
afterEach(() => Promise.all(workers.splice(0).map(worker => worker.terminate())));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('returns results in any order, and reports without a reply', async () => {
  const counted: number[] = [];
  const { calls } = start({ counted: (n: number) => counted.push(n) });
  expect(await Promise.all([1, 2, 3].map(n => calls.call('add', n, 10)))).toEqual([11, 12, 13]);
  calls.notify('count', 2);
  await calls.call('count', 3);
  expect(counted).toEqual([1, 2, 1, 2, 3]);
});

it('keeps the text and the stack of an error, or its class by a codec', async () => {
  const plain = await start()
    .calls.call('fail', 'two\nlines')
    .catch((error: Error) => error);
  expect(plain).toMatchObject({ message: 'two\nlines', stack: expect.stringContaining('worker.cjs') as string });
  const codec: ErrorCodec = {
    encode: error => error,
    decode: encoded => new UserError(`${(encoded as Error).name}: ${(encoded as Error).message}`),
  };
  await expect(start({}, codec).calls.call('fail', 'why')).rejects.toEqual(new UserError('TypeError: why'));
});

it('fails a call whose arguments or result cannot be cloned, and no other', async () => {
  const { calls } = start();
  await expect(calls.call('add', 1, (() => 1) as never)).rejects.toThrow(/could not be cloned/);
  await expect(calls.call('unclonable')).rejects.toThrow(/could not be cloned/);
  expect(await calls.call('add', 1, 1)).toBe(2);
});

it('transfers the buffers of a marked result, each once', async () => {
  const { calls } = start();
  for (const [moved, held] of [
    [true, [0, 0, 0]],
    [false, [16, 16, 2]],
  ] as const) {
    const { half, rest } = await calls.call('buffers', moved);
    expect([...half]).toEqual([1, 1, 1, 1]);
    expect([rest[0].buffer === half.buffer, [...rest[1]]]).toEqual([true, [7, 7]]);
    expect(await calls.call('held')).toEqual(held);
  }
});

it('fails pending and later calls with the first reason when the worker ends', async () => {
  const { calls, worker } = start();
  worker.on('exit', exitCode => {
    calls.end(new Error(`exit code ${exitCode}`));
    calls.end(new Error('a second reason'));
  });
  const pending = [calls.call('die', 3), calls.call('add', 1, 1)];
  await expect(pending[0]).rejects.toThrow(/^exit code 3$/);
  expect(await pending[1]).toBe(2);
  await expect(calls.call('add', 1, 1)).rejects.toThrow(/^exit code 3$/);
  calls.notify('count', 1);
});
