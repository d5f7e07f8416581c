// A policy loss: PPO's clipped surrogate. Name this file in the configuration,
// actor_rollout_ref.actor.policy_loss.loss_mode: plugins/my_plugin.ts. A saved change applies from the next step on.
import { defineLoss } from 'ragen-workbench/api/plugins/loss';

export default defineLoss({
  name: 'my_plugin',

  // Returns, per token, the loss and its derivative with respect to the log-prob (the slope).
  loss: (sequences, { clip_ratio_low, clip_ratio_high }) =>
    sequences.map(({ logprobs, old, advantages, mask }) => {
      const loss = new Float32Array(mask.length);
      const slope = new Float32Array(mask.length);
      const clipped = new Uint8Array(mask.length); // counted by the metric actor/pg_clipfrac
      mask.forEach((bit, token) => {
        if (!bit) return;
        const ratio = Math.exp(Math.min(20, Math.max(-20, logprobs[token] - old[token])));
        const plain = -advantages[token] * ratio; // also its own derivative, because d ratio / d logprob = ratio
        const bounded = -advantages[token] * Math.min(1 + clip_ratio_high, Math.max(1 - clip_ratio_low, ratio));
        loss[token] = Math.max(plain, bounded);
        slope[token] = bounded > plain ? 0 : plain;
        clipped[token] = bounded > plain ? 1 : 0;
      });
      return { loss, slope, clipped };
    }),
});
