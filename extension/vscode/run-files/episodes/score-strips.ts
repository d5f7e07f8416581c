// Score distributions of a run's episodes, from scores.jsonl. For each tag, the reader stores how often each score
// occurred at each step. A page receives one strip per tag. A strip is a table with one row per score bin and as many
// columns as the page requests. For a run of 100,000 steps, the page thus receives only a few kilobytes.
import { join } from 'node:path';
import { scoreColumn, type ScoreStrip } from '../../../protocol/dashboard-page';
import { runFiles } from '../../../run-data/run-file-names';
import { scoresLineSchema } from '../../../run-data/step-lines';
import { JsonLines } from '../../../node/json-lines';

/** Number of score bins. */
const bins = 20;

interface TagScores {
  steps: number[];
  scores: number[];
  counts: number[];
  low: number;
  high: number;
}

export class ScoreStrips {
  private readonly tags = new Map<string, TagScores>();
  private readonly file;
  private reading: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.file = new JsonLines(join(folder, runFiles.scores), scoresLineSchema);
  }

  /**
   * Returns one strip per tag over steps [from, to], with tags in order of first occurrence. Reads newly appended lines
   * first.
   */
  strips(from: number, to: number, columns: number): Promise<ScoreStrip[]> {
    const next = this.reading.then(async () => {
      await this.read();
      return [...this.tags].map(([tag, scores]) => stripOf(tag, scores, from, to, columns));
    });
    this.reading = next.catch(() => undefined);
    return next;
  }

  private async read(): Promise<void> {
    const { lines, restarted } = await this.file.read();
    if (restarted) this.tags.clear();
    for (const { step, tags } of lines) {
      for (const [tag, spread] of Object.entries(tags)) {
        let held = this.tags.get(tag);
        if (!held) this.tags.set(tag, (held = { steps: [], scores: [], counts: [], low: Infinity, high: -Infinity }));
        for (const [score, count] of spread) {
          held.steps.push(step);
          held.scores.push(score);
          held.counts.push(count);
          held.low = Math.min(held.low, score);
          held.high = Math.max(held.high, score);
        }
      }
    }
  }
}

/**
 * Computes a tag's strip. The bins divide the score range of the complete run, so that they do not change when the user
 * scrolls.
 */
function stripOf(tag: string, held: TagScores, from: number, to: number, columns: number): ScoreStrip {
  const flat = !(held.high > held.low);
  const [low, high] = flat ? [held.low - 0.5, held.high + 0.5] : [held.low, held.high];
  const counts = new Float32Array(columns * bins);
  const lowest = new Float64Array(bins).fill(Infinity);
  const highest = new Float64Array(bins).fill(-Infinity);
  for (let i = 0; i < held.steps.length; i++) {
    const [step, score] = [held.steps[i], held.scores[i]];
    const bin = Math.min(bins - 1, Math.floor(((score - low) / (high - low)) * bins));
    lowest[bin] = Math.min(lowest[bin], score);
    highest[bin] = Math.max(highest[bin], score);
    if (step >= from && step <= to) counts[scoreColumn(step, from, to, columns) * bins + bin] += held.counts[i];
  }
  return { tag, low, high, columns, bins, counts, lowest, highest };
}
