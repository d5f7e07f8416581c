// A process that sends what none may, stops, spins and floods, in few rounds: npm run torture -- environment-channel has many. And a training
// run whose environment attacks its own process: it equals one that was left alone.
import { expect, test } from 'vitest';
import { playWithHostilePeer, trainWithHostileCode } from '../../torture/environment-channel';

test('each episode is right or ends with a sentence, whatever the process sends', { timeout: 180_000 }, async () => {
  const { starts } = await playWithHostilePeer(6, 3);
  expect(starts).toBeGreaterThan(3);
});

test('a run with attacks on its channel equals one without', { timeout: 180_000 }, async () => {
  await trainWithHostileCode(3);
});
