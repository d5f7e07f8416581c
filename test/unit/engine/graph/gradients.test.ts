// Every differentiable operation against central differences, driven by tables (operation-cases.ts,
// packed-operation-cases.ts, encoder-operation-cases.ts). A new operation without a row fails the first test.
import { describe, expect, it } from 'vitest';
import * as encoderOps from '../../../../extension/engine/graph/encoder-ops';
import * as frozenOps from '../../../../extension/engine/graph/frozen-ops';
import { Graph } from '../../../../extension/engine/graph/graph';
import * as layerOps from '../../../../extension/engine/graph/layer-ops';
import * as ops from '../../../../extension/engine/graph/ops';
import * as packedOps from '../../../../extension/engine/graph/packed-ops';
import { Session } from '../../../../extension/engine/session/session';
import { encoderCases } from './encoder-operation-cases';
import { compose, operationCases, titleOf } from './operation-cases';
import type { OperationCase } from './operation-cases';
import { frozenCases, packedCases } from './packed-operation-cases';

/** Exported helpers that emit nodes without recording a gradient; `cast` is tested in float16.test.ts. */
const unrecorded = ['cast', 'compare', 'toFloat', 'sumTo', 'reduced', 'converted', 'binary', 'unary'];
/** Int8 products, see frozen-ops.test.ts, and a statistic of the score graph, see token-inspection.test.ts. */
const notDifferentiable = ['quantizeRows', 'int8Linear', 'dequantized', 'squaredProbs'];
const cases = [...operationCases, ...packedCases, ...frozenCases, ...encoderCases];

/** Compares central differences of the loss with the gradients that autodiff emits. */
async function check(row: OperationCase): Promise<void> {
  const { graph, feeds, data, dims } = compose(row);
  const session = await Session.create(graph, { threads: 1 });
  const analytic = await session.run(feeds);
  const lossOf = async (): Promise<number> => ((await session.run(feeds)).loss.data as Float32Array)[0];
  const step = 5e-3;
  for (const [i, x] of data.entries()) {
    const dx = analytic[`dx${i}`];
    expect(dx.dims, `shape of dx${i}`).toEqual(dims[i]);
    const gradient = dx.data as Float32Array;
    const scale = Math.max(0.1, ...gradient.map(Math.abs));
    for (let k = 0; k < x.length; k++) {
      const before = x[k];
      x[k] = before + step;
      const [high, above] = [x[k], await lossOf()];
      x[k] = before - step;
      const difference = (above - (await lossOf())) / (high - x[k]);
      x[k] = before;
      const error = Math.abs(gradient[k] - difference) / scale;
      expect(error, `d loss/d x${i}[${k}] is ${gradient[k]}, differences say ${difference}`).toBeLessThan(1e-2);
    }
  }
  await session.release();
}

describe('differentiable operations', () => {
  const functions = Object.entries({ ...ops, ...layerOps, ...packedOps, ...frozenOps, ...encoderOps }).filter(
    ([, f]) => typeof f === 'function',
  );

  it('all have a row', () => {
    const rows = new Set(cases.map(({ op }) => op));
    expect(functions.map(([name]) => name).sort()).toEqual([...rows, ...unrecorded, ...notDifferentiable].sort());
  });

  it.each(cases.map(row => ({ ...row, title: titleOf(row) })))('$title has the gradient of central differences', check);
});

describe('helpers without gradients', () => {
  it('record no gradient', () => {
    const g = new Graph('helpers');
    const [a, b] = ['a', 'b'].map(name => g.input(name, 'float32', [2, 3]));
    ops.toFloat(g, ops.compare(g, 'Less', a, b));
    ops.sumTo(g, ops.unary(g, 'Exp', ops.binary(g, 'Add', a, b)), [3]);
    expect(g.tape).toEqual([]);
  });
});
