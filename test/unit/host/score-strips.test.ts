// @vitest-environment happy-dom
// How the scores of a run are given to the page: counts in bins, and of each bin which scores are in it.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ScoreStrips } from '../../../extension/host/score-strips';
import { runFiles } from '../../../extension/protocol/run-folder';
import { scoreWords } from '../../../webview/dashboard/score-card';

it('tells the score of a bin that holds one alone, and the range of others', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-scores-'));
  const lines = [
    {
      step: 1,
      tags: {
        lake: [
          [-0.1, 2],
          [0, 4],
          [1, 2],
        ],
      },
    },
    {
      step: 2,
      tags: {
        lake: [
          [0.02, 1],
          [0.04, 1],
          [1, 7],
        ],
      },
    },
  ];
  writeFileSync(join(folder, runFiles.scores), lines.map(line => `${JSON.stringify(line)}\n`).join(''));
  const [strip] = await new ScoreStrips(folder).strips(1, 2, 1);
  const words = [...strip.counts.keys()].filter(bin => strip.counts[bin] > 0).map(bin => scoreWords(strip, bin));
  expect(words).toEqual(['−0.100', '0', '0.0200 to 0.0400', '1']);
  const [early] = await new ScoreStrips(folder).strips(1, 1, 1);
  expect(scoreWords(early, early.bins - 1)).toBe('1');
});
