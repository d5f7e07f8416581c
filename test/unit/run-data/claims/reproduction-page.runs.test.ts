// The table of docs/REPRODUCTION.md against the stored metrics: each bold verdict is the one that `ragen claims NAME
// --metrics test/experiments/results` finds, and the numbers of seeds and runs are those of the stored runs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { yamlValue } from '../../../../extension/common/yaml-text';
import { readClaimCsv } from '../../../../extension/run-data/claims/claim-metrics';
import { claimSchema } from '../../../../extension/run-data/claims/claim-schema';
import { judgeClaim } from '../../../../extension/run-data/claims/claim-verdict';
import { repository, sweepFolder } from '../../trainer/config/presets';

const page = readFileSync(join(repository, 'docs/REPRODUCTION.md'), 'utf8');

/** Rows of the page's table: the number of a claim, our result, the bold verdict and the sweep that gives it again. */
const rows = [...page.matchAll(/^\| (\d+) [^|]*\|[^|]*\|([^|]*)\| \*\*([^*|]+)\*\*[^|]*\| `ragen sweep (\w+) /gm)].map(
  ([, number, ours, verdict, sweep]) => ({ number: Number(number), ours, verdict, sweep }),
);

test('the table has a row for each of the claims 1 to 10', () =>
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 10 }, (_, i) => i + 1)));

test.each(rows)('the row of claim $number agrees with its stored runs', ({ number, ours, verdict, sweep }) => {
  const { claim } = yamlValue(readFileSync(join(sweepFolder, `${sweep}.yaml`), 'utf8')) as { claim: unknown };
  const runs = readClaimCsv(readFileSync(join(repository, `test/experiments/results/${sweep}.csv`), 'utf8'));
  const judged = judgeClaim(claimSchema.parse(claim), runs);
  expect({ number: judged.number, verdict: judged.verdict }).toEqual({ number, verdict });

  const [, count, unit] = /(\d+) (seeds|runs)\b/.exec(ours)!;
  const stored = unit === 'runs' ? runs.length : new Set(runs.map(({ seed }) => seed)).size;
  expect(Number(count)).toBe(stored);
});
