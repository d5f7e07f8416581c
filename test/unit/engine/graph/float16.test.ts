// Every differentiable operation on float16 operands: value and gradients equal float32's up to float16 rounding, and
// gradients have the type of their operand. Types must agree; sums of many terms accumulate in float32.
import { describe, expect, it } from 'vitest';
import { gradients } from '../../../../extension/engine/graph/autodiff';
import { Graph } from '../../../../extension/engine/graph/graph';
import { linear, rmsNorm } from '../../../../extension/engine/graph/layer-ops';
import { add, cast, mul, sumAll } from '../../../../extension/engine/graph/ops';
import { Session, float32 } from '../../../../extension/engine/session/session';
import { compose, operationCases, titleOf } from './operation-cases';
import type { OperationCase } from './operation-cases';
import { packedCases } from './packed-operation-cases';

async function check(row: OperationCase): Promise<void> {
  const [whole, half] = await Promise.all(
    (['float32', 'float16'] as const).map(async type => {
      const { graph, feeds } = compose(row, 'cpu', type);
      const session = await Session.create(graph, { threads: 1 });
      const outputs = await session.run(feeds);
      await session.release();
      return outputs;
    }),
  );
  for (const [name, { dims, data }] of Object.entries(whole)) {
    expect(half[name]).toMatchObject({ type: 'float32', dims });
    const [expected, actual] = [data as Float32Array, half[name].data as Float32Array];
    const scale = Math.max(0.5, ...expected.map(Math.abs));
    expected.forEach((x, i) => expect(Math.abs(actual[i] - x) / scale, `${name}[${i}]`).toBeLessThan(1e-2));
  }
}

describe('a float16 operation', () => {
  it.each([...operationCases, ...packedCases].map(row => ({ ...row, title: titleOf(row) })))(
    '$title has the gradient of float32',
    check,
  );
});

it('rounds values cast to float16, but not their gradients', async () => {
  const g = new Graph('cast');
  const x = g.input('x', 'float32', [3]);
  const y = cast(g, cast(g, x, 'float16'), 'float32');
  g.output('y', y);
  g.output('dx', gradients(g, sumAll(g, mul(g, y, y)), [x])[0]);
  const session = await Session.create(g, { threads: 1 });
  const { y: rounded, dx } = await session.run({ x: float32(Float32Array.of(1.0001, 3.1415927, -65504.1), [3]) });
  expect([...rounded.data]).toEqual([1, 3.140625, -65504]);
  expect([...dx.data]).toEqual([2, 6.28125, -Infinity]); // a gradient has the type of its value, float16
});

it('gives weights gradients of their own type', () => {
  const g = new Graph('mixed');
  const x = g.input('x', 'float16', ['n', 4]);
  const [half, whole] = [g.input('half', 'float16', [4, 4]), g.input('whole', 'float32', [4])];
  const y = rmsNorm(g, linear(g, x, half), whole, 1e-6);
  expect(y.type).toBe('float16');
  const found = gradients(g, sumAll(g, y), [half, whole]);
  expect(found.map(({ type }) => type)).toEqual(['float16', 'float32']);
});

it('refuses operands of different types', () => {
  const g = new Graph('unlike');
  const [x, y] = [g.input('x', 'float16', [2]), g.input('y', 'float32', [2])];
  expect(() => add(g, x, y)).toThrow('graph: Add needs float32, got float16 for x');
});

it('sums thousands of float16 values without losing the small ones', async () => {
  const g = new Graph('sum');
  g.output('sum', sumAll(g, cast(g, g.input('x', 'float32', ['n']), 'float16')));
  const session = await Session.create(g, { threads: 1 });
  const { sum } = await session.run({ x: float32(new Float32Array(10_000).fill(1), [10_000]) });
  expect(sum.data[0]).toBe(10_000);
});
