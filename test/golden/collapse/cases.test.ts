// Compares the collapse metrics with PyTorch in float32 (test/golden/make/collapse.py): all of RAGEN's metrics,
// including running averages.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { collapseMetrics } from '../../../extension/trainer/diagnostics/collapse-metrics';
import type { MarginalSpread } from '../../../extension/trainer/diagnostics/collapse-metrics';

interface Case {
  log_probs_per_token: number[][];
  lengths: number[];
  column: number[];
  signatures: number[];
  metrics: Record<string, number>;
}

const cases = JSON.parse(readFileSync(new URL('./cases.json', import.meta.url), 'utf8')) as Case[];

it('collapse metrics agree with PyTorch to 1e-5', () => {
  let spread: MarginalSpread | null = null;
  for (const { log_probs_per_token: perToken, lengths, column: columns, signatures, metrics: expected } of cases) {
    const found = collapseMetrics({ perToken, lengths, columns, signatures }, spread);
    spread = found.spread;
    const own = Object.keys(found.metrics).filter(key => !key.startsWith('paper_'));
    expect(own.sort()).toEqual(Object.keys(expected).sort());
    for (const [key, value] of Object.entries(expected))
      expect(Math.abs(found.metrics[key] - value), `${key}: ${found.metrics[key]} for ${value}`).toBeLessThanOrEqual(
        1e-5 * Math.max(1, Math.abs(value)),
      );
  }
});
