// FrozenLake with rewards that do not depend on the lake and that drive the reasoning away from the prompt. `none` pays
// nothing; `coin` pays by a random bit drawn for each episode; `move` pays for one action in every state.
import { z } from 'zod';
import lake from '../../envs/frozen-lake/index';
import { defineEnvironment } from '../../envs/api/environment';
import { Pcg64 } from '../../envs/api/random/pcg64';

export default defineEnvironment({
  ...lake,
  name: 'driven_lake',
  config: lake.config.extend({
    reward: z.enum(['lake', 'none', 'coin', 'move']).default('lake').describe('what is paid for'),
    move: z.int().min(1).max(4).default(1).describe('the action that `reward: move` pays for'),
  }),
  create({ reward, move, ...config }) {
    const inner = lake.create(config);
    let coin = 0;
    return {
      ...inner,
      reset(options) {
        coin = new Pcg64(options.seed * 64 + (options.member ?? 0)).random() < 0.5 ? 0.2 : 0;
        return inner.reset(options);
      },
      async step(action) {
        const result = await inner.step(action);
        const paid = { lake: result.reward, none: 0, coin, move: Number(action) === move ? 0.2 : 0 };
        return { ...result, reward: paid[reward] };
      },
    };
  },
});
