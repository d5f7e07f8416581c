// FrozenLake whose rewards carry little signal, for experiments on collapse. A slip replaces a move by a random move; an
// unpaid lake rewards nothing. Each episode draws its own slips, so that episodes of a group end differently by chance.
// The noise begins after a number of calm seeds, so that a model can learn before it sets in. Seeds below the first
// training seed are always calm: validation measures what the policy can do without noise.
import { z } from 'zod';
import lake from '../frozen-lake/index';
import { defineEnvironment } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';

/** First training seed of a run, modulo `seedStride`; the training seeds of the runs of a sweep are a stride apart. */
const firstSeed = 10_000;
const seedStride = 1_000_000;

export default defineEnvironment({
  ...lake,
  name: 'noisy_lake',
  config: lake.config.extend({
    slip: z.number().min(0).max(1).default(0).describe('probability that a move is replaced by a random move'),
    unpaid: z.number().min(0).max(1).default(0).describe('share of lakes whose goal pays nothing'),
    calm_seeds: z.int().min(0).default(0).describe('number of training seeds without noise at the start of a run'),
  }),
  create({ slip, unpaid, calm_seeds, ...config }) {
    const inner = lake.create(config);
    let chance = new Pcg64(0);
    let noisy = false;
    let paid = true;
    return {
      ...inner,
      reset(options) {
        const { seed, member = 0 } = options;
        noisy = (seed % seedStride) - firstSeed >= calm_seeds;
        paid = !noisy || new Pcg64(seed).random() >= unpaid;
        chance = new Pcg64(seed * 64 + member);
        return inner.reset(options);
      },
      async step(action) {
        const slips = noisy && chance.random() < slip;
        const result = await inner.step(slips ? chance.integers(1, 5) : action);
        return paid ? result : { ...result, reward: 0 };
      },
    };
  },
});
