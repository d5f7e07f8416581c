// Returns the sentence above the bars of the gradients. It says whether the task's gradient is larger in those buckets
// of prompt groups whose reward deviation is large, and which loss terms dominate in buckets with a small deviation.
import type { GradientAnalysisRecord } from '../../../extension/run-data/diagnostics';
import { formatNumber } from '../../shared/format';

export type GradientAnalysis = GradientAnalysisRecord['analyses'][number];
type Bucket = GradientAnalysis['buckets'][number];

/** Compares the gradient norms of two buckets: the bucket with the lowest deviation and the bucket with the highest. */
export function gradientCaption({ parts, buckets }: GradientAnalysis): string {
  const graded = buckets.filter(({ name }) => name !== 'all');
  const task = parts.indexOf('task');
  if (graded.length < 2 || task < 0) return 'Only one bucket: nothing to compare.';
  const norm = (bucket: Bucket, part: number) => bucket.gradients[part].norm;
  const [low, high] = [graded[0], graded[graded.length - 1]];
  const [least, most] = [norm(low, task), norm(high, task)];
  const numbers = `from ${formatNumber(least)} where scores differ least (deviation ${formatNumber(stdOf(low))}) to ${formatNumber(most)} where they differ most (deviation ${formatNumber(stdOf(high))})`;
  const { snr } = high.gradients[task];
  const noisy = snr !== null && snr <= 1;
  const rises =
    most > 1.5 * least
      ? `The task’s gradient rises ${numbers}: ${noisy ? 'reward deviation may carry signal' : 'reward deviation carries signal'}`
      : most < least / 1.5
        ? `The task’s gradient falls ${numbers}: reward deviation carries no signal here`
        : `The task’s gradient hardly changes ${numbers}: a filter by deviation cannot help much`;
  const others = parts.filter((_, p) => p !== task && norm(low, p) > norm(low, task));
  const alone =
    others.length > 0
      ? ` In the lowest bucket, ${others.join(' and ')} outweigh${others.length === 1 ? 's' : ''} the task’s gradient: there, the regularisers dominate the update.`
      : '';
  const noise = noisy
    ? ` Even in the highest bucket, the task’s gradient cannot be distinguished from noise (signal-to-noise ratio ${formatNumber(snr)}).`
    : '';
  return `${rises}.${alone}${noise}`;
}

/** Returns a bucket's mean in-group standard deviation of the reward. */
export const stdOf = ({ groups }: Bucket): number =>
  groups.reduce((sum, { reward_std }) => sum + reward_std, 0) / groups.length;
