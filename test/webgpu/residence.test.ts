// Tensors that stay on the device are passed between sessions without a copy to the host, are read back unchanged,
// belong to one holder, and free their memory.
import { expect, it } from 'vitest';
import { describeWebgpu } from './adapter';
import { DeviceTensor, dispose } from '../../extension/engine/session/device-tensor';
import { Graph } from '../../extension/engine/graph/graph';
import { matmul } from '../../extension/engine/graph/layer-ops';
import { add, scale, sumAll } from '../../extension/engine/graph/ops';
import { Session, float32, int32 } from '../../extension/engine/session/session';
import type { SessionOptions, Tensor } from '../../extension/engine/session/session';
import { Transfer } from '../../extension/engine/session/transfer';

const options: SessionOptions = { provider: 'webgpu', threads: 1 };
const everything = (): boolean => true;

function doubler(resident: SessionOptions['resident'] = everything): Promise<Session> {
  const g = new Graph('doubler', 'webgpu');
  const x = g.input('x', 'float32', ['n', 'm']);
  g.output('y', scale(g, x, 2));
  g.output('sum', sumAll(g, x));
  return Session.create(g, { ...options, resident });
}

const numbers = (n: number, f: (i: number) => number = i => i / 7): Tensor =>
  float32(
    Float32Array.from({ length: n }, (_, i) => f(i)),
    [n / 4, 4],
  );

describeWebgpu('a tensor on the device', () => {
  it('can be fed to other sessions, and only the selected outputs stay on the device', async () => {
    const session = await doubler(name => name === 'y');
    const first = await session.run({ x: numbers(8) });
    expect(first.y).toBeInstanceOf(DeviceTensor);
    expect(first.sum).not.toBeInstanceOf(DeviceTensor);
    const second = await (await doubler()).run({ x: first.y });
    const { data } = await new Transfer(options).download(second.y);
    expect(data).toEqual(numbers(8, i => (4 * i) / 7).data);
  });

  it('is unchanged after upload and download, for every rank and for integers', async () => {
    const transfer = new Transfer(options);
    const tensors = [
      float32(Float32Array.of(Math.PI), []),
      numbers(12),
      float32(Float32Array.from({ length: 24 }, Math.sin), [2, 3, 1, 4]),
      int32(Int32Array.of(-1, 2 ** 30, 7), [3]),
    ];
    for (const tensor of tensors) {
      const up = await transfer.upload(tensor);
      expect(up).toBeInstanceOf(DeviceTensor);
      expect(up.dims).toEqual(tensor.dims);
      expect(await transfer.upload(up)).toBe(up);
      expect(await transfer.download(up)).toEqual(tensor);
      dispose([up]);
    }
    const host = numbers(4);
    expect(await transfer.download(host)).toBe(host);
    expect(await new Transfer({ threads: 1 }).upload(host)).toBe(host);
    await transfer.release();
  });

  it('throws if its data are read on the host, and if it is fed after disposal', async () => {
    const up = (await new Transfer(options).upload(numbers(4))) as DeviceTensor;
    expect(() => up.data).toThrow('tensor [1, 4]: its numbers are on the device: download them first');
    up.dispose();
    up.dispose();
    await expect((await doubler()).run({ x: up })).rejects.toThrow(
      'tensor [1, 4]: the tensor is already disposed and cannot be fed',
    );
  });

  it('is unchanged while other tensors are created and disposed', async () => {
    const transfer = new Transfer(options);
    const kept = await transfer.upload(numbers(64));
    const session = await doubler();
    for (let i = 0; i < 50; i++) dispose(Object.values(await session.run({ x: numbers(64, () => i) })));
    expect(await transfer.download(kept)).toEqual(numbers(64));
  });

  it('frees its memory when disposed: memory stays bounded over 200 runs that each replace 4 MB', async () => {
    const g = new Graph('replace', 'webgpu');
    const [x, w] = [g.input('x', 'float32', ['n', 64]), g.input('w', 'float32', [64, 64])];
    g.output('y', add(g, matmul(g, x, w, { transB: true }), x));
    const session = await Session.create(g, { ...options, resident: everything });
    const transfer = new Transfer(options);
    let state = await transfer.upload(float32(new Float32Array(2 ** 20).fill(1e-3), [2 ** 14, 64]));
    const w0 = float32(new Float32Array(4096), [64, 64]);
    const advance = async (runs: number): Promise<void> => {
      for (let i = 0; i < runs; i++) {
        const { y } = await session.run({ x: state, w: w0 });
        dispose([state]);
        state = y;
      }
    };
    await advance(20);
    const before = process.memoryUsage().rss;
    await advance(200);
    expect((process.memoryUsage().rss - before) / 2 ** 20, 'megabytes more').toBeLessThan(100);
    expect((await transfer.download(state)).data[12345]).toBe(Math.fround(1e-3));
  });
});
