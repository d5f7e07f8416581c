// Sessions: symbols are bound at run time, every input must be fed, outputs belong to the caller, and errors name the
// graph.
import { expect, it } from 'vitest';
import { Graph } from '../../../../extension/engine/graph/graph';
import { add, exp, scale } from '../../../../extension/engine/graph/ops';
import { Session, float32 } from '../../../../extension/engine/session/session';
import { runGraph } from '../graph/run-graph';

const doubler = (): Promise<Session> => {
  const g = new Graph('doubler');
  g.output('y', scale(g, g.input('x', 'float32', ['n']), 2));
  return Session.create(g, { threads: 1 });
};

it('accepts another size in each run', async () => {
  const session = await doubler();
  for (const n of [1, 5, 2, 0]) {
    const { y } = await session.run({ x: float32(new Float32Array(n).fill(3), [n]) });
    expect(y).toEqual({ type: 'float32', dims: [n], data: new Float32Array(n).fill(6) });
  }
});

it('leaves the output of an earlier run unchanged', async () => {
  const session = await doubler();
  const first = await session.run({ x: float32(Float32Array.of(1), [1]) });
  await session.run({ x: float32(Float32Array.of(7), [1]) });
  expect([...first.y.data]).toEqual([2]);
});

it('reads a view of a larger array, and sees writes to it between runs', async () => {
  const session = await doubler();
  const whole = Float32Array.of(1, 2, 3, 4);
  const feeds = { x: float32(whole.subarray(1, 3), [2]) };
  expect([...(await session.run(feeds)).y.data]).toEqual([4, 6]);
  whole[2] = 50;
  expect([...(await session.run(feeds)).y.data]).toEqual([4, 100]);
});

it('names an input that was not fed', async () => {
  await expect((await doubler()).run({})).rejects.toThrow('session doubler: input x was not fed');
});

it('returns every output, also one that is an input or another output', async () => {
  const outputs = await runGraph((g, feed) => {
    const x = feed('x', float32(Float32Array.of(0, 1), [2]));
    const y = add(g, exp(g, x), x);
    return { x_again: x, y, y_again: y };
  });
  expect(outputs.x_again).toEqual([0, 1]);
  expect(outputs.y).toEqual([1, Math.fround(Math.E + 1)]);
  expect(outputs.y_again).toEqual(outputs.y);
});
