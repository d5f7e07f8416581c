// Data of page tests and previews must be data that a trainer could have written.
import { describe, expect, it } from 'vitest';
import { episodeSchema } from '../../../extension/run-data/episode';
import { eventSchema } from '../../../extension/run-data/run-events';
import { metricsLineSchema } from '../../../extension/run-data/step-lines';
import { statusSchema } from '../../../extension/run-data/run-status-file';
import { episodesOf, metricLines, rowOf, runAt, runEvents } from '../../e2e/preview/data';

describe('generated runs', () => {
  it('follow the schemas of the run folder', () => {
    for (const line of metricLines(30)) metricsLineSchema.parse(line);
    for (const event of runEvents(140)) eventSchema.parse(event);
    for (const mode of ['train', 'val'] as const)
      for (const episode of episodesOf(20, mode)) episodeSchema.parse(episode);
    statusSchema.parse(runAt(3, 10).status);
  });

  it('are reproducible', () => {
    expect(metricLines(12)).toEqual(metricLines(12));
    expect(episodesOf(5, 'train')).toEqual(episodesOf(5, 'train'));
  });

  it('are consistent: scores, spans and rows', () => {
    for (const episode of episodesOf(7, 'train')) {
      expect(episode.score).toBeCloseTo(
        episode.turns.reduce((sum, turn) => sum + turn.reward + turn.penalty, 0),
        9,
      );
      for (const { span, raw, thought, answer } of episode.turns) {
        expect(episode.tokens.mask.slice(...span)).not.toContain(0);
        if (thought !== null) expect(raw).toBe(`<think>${thought}</think><answer>${answer}</answer>`);
      }
      expect(rowOf(episode)).toMatchObject({ id: episode.id, turns: episode.turns.length });
    }
    const solved = episodesOf(7, 'train').filter(episode => episode.success).length;
    expect(solved).toBeGreaterThan(20);
    expect(solved).toBeLessThan(108);
  });
});
