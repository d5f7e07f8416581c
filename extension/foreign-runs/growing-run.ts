// A run of another trainer whose folder gets further sources while it is followed: a validation folder, a second log, a
// file per step. The adapter looks again whenever the listing has other names. Sources that are known are kept, because
// they know how far they have read.
import { UserError } from '../common/user-error';
import type { Mapping } from '../run-data/mapping-proposal';
import type { Adapter, ForeignRun, MetricSource } from './adapter';
import type { SourceFolder } from './source-folder';

/**
 * Returns the run with a `refresh`, which the caller calls after each refresh of the listing. If the adapter then finds
 * nothing, or several runs, the run stays as it was.
 */
export function growingRun(source: SourceFolder, adapter: Adapter, mapping: Mapping, first: ForeignRun): ForeignRun {
  const metrics: MetricSource[] = [...first.metrics];
  let latest = first;
  let names = source.files.join('\n');
  return {
    ...first,
    metrics,
    rollouts: () => latest.rollouts(),
    ...(first.ended && { ended: () => latest.ended?.() ?? Promise.resolve(false) }),
    async refresh() {
      const now = source.files.join('\n');
      if (now === names) return;
      names = now;
      const found = await adapter.find(source, mapping).catch((error: unknown) => {
        if (error instanceof UserError) return null;
        throw error;
      });
      if (!found) return;
      latest = found;
      for (const each of found.metrics) if (!metrics.some(({ name }) => name === each.name)) metrics.push(each);
    },
  };
}
