// Pairs, their order and payouts equal RAGEN's procedure on Gymnasium's generator (test/golden/make/envs_bandit.py),
// seed by seed.
import { describe, expect, test } from 'vitest';
import golden from '../../../golden/envs/bandit.json';
import { checkSeeds } from '../../../golden/envs/trace';
import bandit from '../../../../envs/bandit/index';
import { createSync } from '../../../support/sync-environment';

type Row = [seed: number, member: number, first: string, second: string, pays: number, other: number];

describe.each(golden)('$split, hi_arm_hiscore_prob $chance', ({ split, chance, rows }) => {
  const config = bandit.config.parse({ split, hi_arm_hiscore_prob: chance });

  test('each seed equals the golden data', () =>
    checkSeeds(rows as Row[], (seed, member, first, second, ...pays) => {
      const environment = createSync(bandit, config);
      for (const [i, arm] of [first, second].entries()) {
        const { observation, actions } = environment.reset({ seed, member }) as Record<
          'observation' | 'actions',
          unknown
        >;
        expect(observation).toContain(`They are called ${first} and ${second}.`);
        expect(actions).toEqual({ 1: first, 2: second });
        const { reward, ...step } = environment.step(arm);
        const text = `${arm}: ${pays[i] === 0.1 ? '0.1' : pays[i].toFixed(1)} points`;
        expect([reward, step.terminated, step.truncated, step.observation]).toEqual([pays[i], true, false, text]);
        expect(step.info.success).toBe(pays[i] !== 0.1);
      }
    }));
});
