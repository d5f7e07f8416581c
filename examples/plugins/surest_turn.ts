// A credit mask: only the turn of an episode whose tokens the policy sampled with the highest mean log-prob is trained.
import { defineMask } from 'ragen-workbench/api/plugins/mask';

const mean = (logprobs: Float32Array): number => logprobs.reduce((sum, x) => sum + x, 0) / Math.max(1, logprobs.length);

export default defineMask({
  name: 'surest_turn',

  weigh: samples =>
    samples.map(({ turns }) => {
      const means = turns.map(({ logprobs }) => mean(logprobs));
      const surest = means.indexOf(Math.max(...means));
      return turns.map(({ logprobs }, turn) => logprobs.map(() => Number(turn === surest)));
    }),
});
