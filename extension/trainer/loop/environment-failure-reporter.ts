// Reports the episodes of a batch that ended with an environment error. The first failure at a code location is
// reported immediately; the number of further failures at this location is reported when the batch ends.
import type { z } from 'zod';
import type { EnvironmentFailure } from '../../protocol/environment-link';
import type { environmentErrorSchema } from '../../run-data/run-events';
import type { Journal } from '../run/journal';

interface FailedEpisode {
  tag: string;
  seed: number;
  failure: EnvironmentFailure;
}

export class FailureReporter {
  private readonly locations = new Map<string, { first: FailedEpisode; episodes: number }>();

  constructor(private readonly journal: Pick<Journal, 'event'>) {}

  see(failed: FailedEpisode): void {
    const { tag, failure } = failed;
    const location = `${tag} ${failure.at ?? failure.message}`;
    const known = this.locations.get(location);
    if (known) return void known.episodes++;
    this.locations.set(location, { first: failed, episodes: 1 });
    this.report(failed, 1, failure.message);
  }

  /** Reports the numbers of further failures. To be called when the batch ends, normally or with an error. */
  end(): void {
    for (const { first, episodes } of this.locations.values())
      if (episodes > 1)
        this.report(
          first,
          episodes - 1,
          `${first.failure.message} (the same in ${episodes - 1} further episodes of this batch)`,
        );
    this.locations.clear();
  }

  private report({ tag, seed, failure: { kind, at } }: FailedEpisode, episodes: number, message: string): void {
    const data: z.infer<typeof environmentErrorSchema> = { tag, seed, kind, at, episodes };
    this.journal.event('environment_error', message, data);
  }
}
