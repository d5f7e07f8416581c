// One kill per phase and target, distributed over as many runs as needed; `npm run torture -- kills` makes 300 kills.
import { rmSync } from 'node:fs';
import { afterAll, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { phases, targets } from '../../../torture/kill-session';
import { killRuns, killedRuns } from '../../../torture/kills';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

test('a run killed at any point continues, loses no committed data and equals an uninterrupted run bit by bit', async () => {
  const [name] = Object.keys(killedRuns);
  const { struck } = await killRuns({ kills: 15, seed: 1, steps: 6, runs: [name], lanes: 1, say: () => undefined });
  const killed = new Set(struck.map(({ phase, card }) => `${card.target} in ${phase}`));
  expect([...killed].sort()).toEqual(phases.flatMap(phase => targets.map(target => `${target} in ${phase}`)).sort());
}, 600_000);
