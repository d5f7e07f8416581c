// A policy loss without a hard clip: −A·δ·tanh(log ρ / δ), where ρ is the importance ratio of a token and A its advantage.
// The gradient of a token falls smoothly as its ratio leaves 1, on both sides.
import { defineLoss } from 'ragen-workbench/api/plugins/loss';

/** The log-ratio at which the loss has reached three quarters of its bound. */
const width = 0.3;

export default defineLoss({
  name: 'soft_clip',

  loss: sequences =>
    sequences.map(({ logprobs, old, advantages, mask }) => {
      const loss = new Float32Array(mask.length);
      const slope = new Float32Array(mask.length);
      mask.forEach((bit, token) => {
        if (!bit) return;
        const bent = Math.tanh((logprobs[token] - old[token]) / width);
        loss[token] = -advantages[token] * width * bent;
        slope[token] = -advantages[token] * (1 - bent * bent);
      });
      return { loss, slope };
    }),
});
