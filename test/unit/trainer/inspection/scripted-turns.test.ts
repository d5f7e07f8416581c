// The engine calls of a what-if: the pictures that a policy's turn is sampled with, whether the engine has cached the
// start of the row or not.
import { expect, test } from 'vitest';
import type { GenerationRow } from '../../../../extension/engine/generation-calls';
import type { RemoteEngine } from '../../../../extension/engine/remote-engine';
import { ScriptedTurns, type TurnSource } from '../../../../extension/trainer/inspection/scripted-turns';
import { partial } from '../../../support/partial';
import { plainSampling } from '../../../support/small-models';

function fakeEngine() {
  const calls: Omit<GenerationRow, 'row' | 'seed'>[] = [];
  const engine = partial<RemoteEngine>({
    watch: () => undefined,
    release: () => Promise.resolve(),
    generate: ([{ row, append, shows }]: readonly GenerationRow[]) => {
      calls.push({ append, ...(shows && { shows }) });
      return Promise.resolve([{ row, ids: [90], logprobs: [-1], finish: 'stop' as const }]);
    },
  });
  return { engine, calls };
}

test('a policy samples with the pictures of all tokens that its engine has not cached', async () => {
  const [first, second] = [fakeEngine(), fakeEngine()];
  const policy = (engine: RemoteEngine): TurnSource => ({
    from: 'policy',
    given: [],
    seed: 1,
    play: work => work(engine),
  });
  const sources: TurnSource[] = [
    { from: 'hand', ids: [50, 51] },
    policy(first.engine),
    policy(first.engine),
    policy(second.engine),
  ];
  const turns = new ScriptedTurns(
    'row',
    () => Promise.resolve(sources.shift()!),
    () => undefined,
    () => undefined,
  );
  const play = (append: number[], ...shows: { at: number; picture: string }[]) =>
    turns.generate([{ row: 'x', append, seed: 0, ...(shows.length > 0 && { shows }) }], plainSampling);
  await play([1, 7, 2], { at: 1, picture: 'a.png' });
  await play([7, 3], { at: 0, picture: 'b.png' });
  await play([4, 7], { at: 1, picture: 'c.png' });
  await play([5]);
  const [a, b] = [
    { at: 1, picture: 'a.png' },
    { at: 5, picture: 'b.png' },
  ];
  expect(first.calls).toEqual([
    { append: [1, 7, 2, 50, 51, 7, 3], shows: [a, b] },
    { append: [4, 7], shows: [{ at: 1, picture: 'c.png' }] },
  ]);
  const whole = [1, 7, 2, 50, 51, 7, 3, 90, 4, 7, 90, 5];
  expect(second.calls).toEqual([{ append: whole, shows: [a, b, { at: 9, picture: 'c.png' }] }]);

  await turns.release(['x']);
  sources.push(policy(second.engine));
  await play([6]);
  expect(second.calls[1]).toEqual({ append: [6] });
});
