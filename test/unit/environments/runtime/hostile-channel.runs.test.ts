// A process that sends invalid messages, stops, spins and floods, for a few rounds; `npm run torture --
// environment-channel` runs many. Also a training run whose environment attacks its own process: the results equal
// those of a run without attacks.
import { expect, test } from 'vitest';
import { playWithHostilePeer, trainWithHostileCode } from '../../../torture/environment-channel';

test(
  'each episode is correct or ends with an error message, whatever the process sends',
  { timeout: 180_000 },
  async () => {
    const { starts } = await playWithHostilePeer(6, 3);
    expect(starts).toBeGreaterThan(3);
  },
);

test('a run with attacks on its channel equals a run without attacks', { timeout: 180_000 }, async () => {
  await trainWithHostileCode(3);
});
