// A process that sends forbidden messages, stops, spins and floods, in few rounds; npm run torture --
// environment-channel runs many. Also a training run whose environment attacks its own process: its results equal an
// unattacked run's.
import { expect, test } from 'vitest';
import { playWithHostilePeer, trainWithHostileCode } from '../../../torture/environment-channel';

test('each episode is correct or ends with a sentence, whatever the process sends', { timeout: 180_000 }, async () => {
  const { starts } = await playWithHostilePeer(6, 3);
  expect(starts).toBeGreaterThan(3);
});

test('a run with attacks on its channel equals one without', { timeout: 180_000 }, async () => {
  await trainWithHostileCode(3);
});
