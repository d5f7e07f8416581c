// The episodes of a batch (RAGEN's es_manager): prompt groups in the order of the tags; all members of a group have the
// same seed. In training, each batch uses the seeds that follow the previous batch's seeds, one seed per group;
// validation always uses the same seeds.

/** The value of `es_manager.train` or `es_manager.val`, already validated. */
export interface EnvGroups {
  env_groups: number;
  group_size: number;
  env_configs: { tags: string[]; n_groups: number[] };
}

/** Position of one episode in its batch. */
export interface EpisodeSlot {
  env_id: number;
  group_id: number;
  /** Index within the group. */
  member: number;
  tag: string;
  seed: number;
}

/** Number of seeds used so far, stored in checkpoints. */
export interface SeedState {
  seed_counter: number;
}

/** Provides the first seed of each batch. */
export class SeedCounter {
  private counter = 0;

  constructor(
    private readonly mode: 'train' | 'val',
    private readonly base: number,
  ) {}

  /**
   * Returns the first seed of the next batch with `env_groups` groups. If `seed` is given, returns `seed`; in training,
   * the next call without `seed` then returns `seed` + 1.
   */
  next(env_groups: number, seed?: number): number {
    if (this.mode === 'val') return seed ?? this.base;
    if (seed !== undefined) {
      this.counter = seed - this.base + 1;
      return seed;
    }
    const first = this.base + this.counter;
    this.counter += env_groups;
    return first;
  }

  get state(): SeedState {
    return { seed_counter: this.counter };
  }

  restore({ seed_counter }: SeedState): void {
    this.counter = seed_counter;
  }
}

/**
 * Returns all episodes of a batch. The first group has the seed `first`, and each further group has the next seed.
 * env_id numbers the episodes group by group.
 */
export function episodeSlots({ group_size, env_configs }: EnvGroups, first: number): EpisodeSlot[] {
  const tagOfGroup = env_configs.tags.flatMap((tag, index) => new Array<string>(env_configs.n_groups[index]).fill(tag));
  return tagOfGroup.flatMap((tag, group_id) =>
    Array.from({ length: group_size }, (_, member) => ({
      env_id: group_id * group_size + member,
      group_id,
      member,
      tag,
      seed: first + group_id,
    })),
  );
}
