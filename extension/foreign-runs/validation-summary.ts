// What the validation rollouts of another trainer tell: metrics of one step under the names of this product's own
// validations. They are computed while the rollouts are converted. Rollouts that ended with an error are counted, and
// left out of all means, as in own runs. Success is missing if the trainer stores it for some rollouts only.
import type { Episode } from '../run-data/episode';
import { passAtK } from '../trainer/evaluation/success-statistics';

/** Maximum number of the trainer's metrics per tag, and of tags; the rest is left out. */
const [mostKeys, mostTags] = [200, 200];
/** Maximum characters of a tag and of a key. */
const mostNameLength = 200;

/** Metrics of all tags together. */
export const untagged: readonly string[] = [
  'val-env/charts/avg_episode_return',
  'val-env/env_error_rate',
  'val-env/num_episodes',
  'val-env/num_prompts',
  'val-env/num_turns/mean',
  'val-env/response_length',
];

export interface SummarisedValidation {
  /** Finite metrics by name, rounded to nine digits. */
  metrics: Record<string, number>;
  /** Number of rollouts, also of those that failed. */
  episodes: number;
}

interface TagSums {
  episodes: number;
  /** Number of rollouts with a known success. */
  judged: number;
  solved: number;
  groups: Map<number, { members: number; solved: number }>;
  /** The trainer's metrics of rollouts. */
  sums: Map<string, { sum: number; count: number }>;
}

/** Collects the episodes of one validation. */
export class ValidationSummary {
  private readonly tags = new Map<string, TagSums>();
  private readonly groups = new Set<number>();
  private all = 0;
  private failed = 0;
  private reward = 0;
  private turns = 0;
  private sampled = 0;
  private withTokens = 0;

  add({ error, group_id, tag, success, reward, turns, tokens, metrics }: Episode): void {
    this.all++;
    this.groups.add(group_id);
    if (error !== undefined) {
      this.failed++;
      return;
    }
    this.reward += reward;
    this.turns += turns.length;
    if (tokens.ids.length > 0) {
      this.withTokens++;
      this.sampled += tokens.mask.reduce<number>((sum, bit) => sum + bit, 0);
    }
    const sums = this.tagSums(tag.replaceAll('/', '_').slice(0, mostNameLength));
    if (!sums) return;
    sums.episodes++;
    const group = sums.groups.get(group_id) ?? { members: 0, solved: 0 };
    sums.groups.set(group_id, group);
    group.members++;
    if (success !== null) sums.judged++;
    if (success === true) {
      sums.solved++;
      group.solved++;
    }
    for (const [key, value] of Object.entries(metrics)) addValue(sums.sums, key, value);
  }

  private tagSums(tag: string): TagSums | undefined {
    const known = this.tags.get(tag);
    if (known || this.tags.size >= mostTags) return known;
    const made: TagSums = { episodes: 0, judged: 0, solved: 0, groups: new Map(), sums: new Map() };
    this.tags.set(tag, made);
    return made;
  }

  /** Returns the metrics of all episodes; none if there was no episode. */
  result(): SummarisedValidation {
    const { all, failed, tags } = this;
    const finished = all - failed;
    const found: [string, number][] = [];
    for (const [tag, sums] of tags)
      for (const [key, value] of tagMetrics(sums)) found.push([`val-env/${tag}/${key}`, value]);
    if (finished > 0)
      found.push(
        ['val-env/charts/avg_episode_return', this.reward / finished],
        ['val-env/num_turns/mean', this.turns / finished],
      );
    if (finished > 0 && this.withTokens === finished) found.push(['val-env/response_length', this.sampled / finished]);
    if (all > 0)
      found.push(
        ['val-env/num_episodes', finished],
        ['val-env/num_prompts', this.groups.size],
        ['val-env/env_error_rate', failed / all],
      );
    const finite = found.filter(([, value]) => Number.isFinite(value)); // huge rewards overflow
    return {
      metrics: Object.fromEntries(finite.map(([name, value]) => [name, Number(value.toPrecision(9))])),
      episodes: all,
    };
  }
}

function addValue(sums: TagSums['sums'], key: string, value: number): void {
  const known = sums.get(key);
  if (!known && (sums.size >= mostKeys || key.length > mostNameLength)) return;
  sums.set(key, { sum: (known?.sum ?? 0) + value, count: (known?.count ?? 0) + 1 });
}

/** Returns the metrics of a tag; pass@k only if all groups have k rollouts. */
function tagMetrics({ episodes, judged, solved, groups, sums }: TagSums): Map<string, number> {
  const found = new Map(Array.from(sums, ([key, { sum, count }]) => [key, sum / count]));
  found.set('num_episodes', episodes);
  if (judged < episodes) return found;
  found.set('success', solved / episodes);
  const sizes = new Set(Array.from(groups.values(), ({ members }) => members));
  const [size] = sizes;
  if (sizes.size !== 1 || size < 2) return found;
  const passed = [...groups.values()].reduce((sum, group) => sum + passAtK(size, group.solved, size), 0);
  return found.set(`pass@${size}`, passed / groups.size);
}
