// With several threads, gradients stay correct and deterministic. Sizes are those of a real micro-batch, because small
// ones run on one thread. ScatterND's unsynchronized additions, which this vjp used before, fail here.
import { expect, it } from 'vitest';
import { gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import { gatherRows, mul, sumAll } from '../../../../extension/engine/graph/ops';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { Session, float32, int64 } from '../../../../extension/engine/session/session';

it('adds all gradients of many tokens to one embedding row, deterministically', async () => {
  const [rows, width, tokens] = [20, 96, 8192];
  const stream = new RandomStream(11);
  const table = Float32Array.from({ length: rows * width }, () => stream.normal());
  const weight = Float32Array.from({ length: tokens * width }, () => stream.uniform());
  const indices = Array.from({ length: tokens }, () => stream.integer(rows));
  const g = new Graph('embedding');
  const t = g.input('table', 'float32', [rows, width]);
  const read = gatherRows(g, t, g.input('indices', 'int64', ['n']));
  const [gradient] = gradients(g, sumAll(g, mul(g, read, g.input('weight', 'float32', ['n', width]))), [t]);
  g.output('gradient', gradient);
  const session = await Session.create(g, { threads: 4 });
  const run = async (): Promise<Float32Array> => {
    const result = await session.run({
      table: float32(table, [rows, width]),
      indices: int64(
        BigInt64Array.from(indices, i => BigInt(i)),
        [tokens],
      ),
      weight: float32(weight, [tokens, width]),
    });
    return result.gradient.data as Float32Array;
  };
  const expected = new Float64Array(rows * width);
  indices.forEach((row, i) => {
    for (let k = 0; k < width; k++) expected[row * width + k] += weight[i * width + k];
  });
  const first = await run();
  first.forEach((x, i) => expect(Math.abs(x - expected[i]) / expected[i]).toBeLessThan(1e-5));
  for (let again = 0; again < 5; again++) expect(await run()).toEqual(first);
  await session.release();
});
