// How the scores of a run's episodes were spread, from scores.jsonl: held as counts by tag, and given as strips of as many columns as a
// picture has, so that 100,000 steps cost the page a few kilobytes.
import { join } from 'node:path';
import type { ScoreStrip } from '../protocol/dashboard-page';
import { runFiles, scoresLineSchema } from '../protocol/run-folder';
import { JsonLines } from './json-lines';

/** Parts of the range of scores. */
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

  /** Strips over steps [from, to], one a tag, the tags in the order in which they came. Reads what the file has gained first. */
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

/** Bins have one range over the whole run, so that a strip does not jump when it is scrolled or grows. */
function stripOf(tag: string, held: TagScores, from: number, to: number, columns: number): ScoreStrip {
  const flat = !(held.high > held.low);
  const [low, high] = flat ? [held.low - 0.5, held.high + 0.5] : [held.low, held.high];
  const counts = new Float32Array(columns * bins);
  const [least, greatest] = [new Float64Array(bins).fill(NaN), new Float64Array(bins).fill(NaN)];
  const span = Math.max(1, to - from + 1);
  for (let i = 0; i < held.steps.length; i++) {
    const step = held.steps[i];
    if (step < from || step > to) continue;
    const column = Math.min(columns - 1, Math.floor(((step - from) / span) * columns));
    const bin = Math.min(bins - 1, Math.floor(((held.scores[i] - low) / (high - low)) * bins));
    counts[column * bins + bin] += held.counts[i];
    const score = held.scores[i];
    if (!(least[bin] <= score)) least[bin] = score;
    if (!(greatest[bin] >= score)) greatest[bin] = score;
  }
  return { tag, low, high, columns, bins, counts, least, greatest };
}
