// What a stop reverts of a training step: everything for few parameters, nothing for many.
import { expect, it } from 'vitest';
import { EngineUndo } from '../../../extension/models/engine-undo';
import { HostParameters } from '../../../extension/models/weights/parameter-bank';
import { Weights } from '../../../extension/models/weights/weights';

const optimizer = { lr: 0.1, betas: [0.9, 0.99] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };

async function changedAfter(undo: EngineUndo): Promise<{ undone: boolean; same: boolean }> {
  const weights = new Weights([{ name: 'a', dims: [2, 4] }]);
  const bank = new HostParameters(weights, { threads: 1 });
  await undo.remember([bank]);
  const before = weights.flat.slice();
  bank.clearGradient();
  (await bank.readGradient()).flat.fill(1);
  await bank.step(optimizer);
  expect(weights.flat).not.toEqual(before);
  return { undone: await undo.rollBack(), same: Buffer.from(weights.flat.buffer).equals(Buffer.from(before.buffer)) };
}

it('restores parameters up to the copy limit', async () => {
  expect(await changedAfter(new EngineUndo(8))).toEqual({ undone: true, same: true });
});

it('reports that it cannot restore more', async () => {
  expect(await changedAfter(new EngineUndo(7))).toEqual({ undone: false, same: false });
});
