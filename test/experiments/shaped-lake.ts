// FrozenLake with potential-based shaping (Ng et al., 1999) in addition to the goal's reward. A step pays 0.1 for each
// cell nearer to the goal by the shortest safe path, and costs 0.1 for each cell farther. Shaping of this kind leaves
// the optimal policy unchanged.
import lake from '../../envs/frozen-lake/index';
import { defineEnvironment } from '../../envs/api/environment';

const share = 0.1;

export default defineEnvironment({
  ...lake,
  name: 'shaped_lake',
  create(config) {
    const inner = lake.create(config);
    const distance = async (): Promise<number | undefined> => (await inner.solve!())?.length;
    return {
      ...inner,
      async step(action) {
        const before = await distance();
        const result = await inner.step(action);
        const after = result.info.success === true ? 0 : await distance();
        const nearer = before === undefined || after === undefined ? 0 : before - after;
        return { ...result, reward: result.reward + share * nearer };
      },
    };
  },
});
