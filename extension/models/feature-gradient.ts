// The gradient of a sample's log-prob for the image features that it shows. It is added to no parameter's gradient.
import type { PassBudget } from '../engine/training-samples';
import type { SessionOptions, Tensor } from '../engine/session/session';
import { unwatched } from '../engine/work-units';
import { chunkFeeds, scalarFeeds } from './graphs/batch-feeds';
import { PackedSessions, passSize } from './graphs/packed-sessions';
import type { Sample } from './graphs/pass-plan';
import { addFeatureGradient, featureFeeds, featuresInput } from './graphs/picture-feeds';
import { featureGradientGraph, gradientName } from './graphs/policy-graphs';
import { preparePasses } from './graphs/prepared-passes';
import { withoutDropout } from './decoder/networks';
import type { Policy } from './policy';

/**
 * Returns the log-prob of the masked tokens of a sample that shows pictures, summed, and its gradient for the image
 * features, [features, width]. The layers' intermediate values are recomputed, and the memory is freed afterwards,
 * because the process may have been planned for scoring alone.
 * @param features [features, width], on the host
 */
export async function featureGradient(
  { network, bank }: Pick<Policy, 'network' | 'bank'>,
  options: SessionOptions,
  sample: Sample,
  budget: PassBudget,
  temperature: number,
  features: Tensor,
  units = unwatched,
): Promise<{ logprob: number; gradient: Float32Array }> {
  const sessions = new PackedSessions(withoutDropout(network), options, true);
  const gradient = new Float32Array(features.data.length);
  let logprob = 0;
  try {
    const { passes, chunks } = preparePasses(network, [sample], budget, 0, units);
    for (const { shared, trimmed, feeds, count } of passes) {
      const shape = { shared, trimmed, pictures: 'trained' as const, chunks };
      const session = await sessions.get('attribute', shape, featureGradientGraph, passSize(feeds, network.config));
      const result = await session.run({
        ...bank.feeds(),
        ...feeds,
        ...featureFeeds(feeds, features),
        ...chunkFeeds(count, chunks),
        ...scalarFeeds({ inverse_temperature: 1 / temperature }),
      });
      logprob += (result.logprob.data as Float32Array)[0];
      addFeatureGradient(feeds, gradient, result[gradientName(featuresInput)]);
    }
  } finally {
    await sessions.release();
  }
  return { logprob, gradient };
}
