// The tables of what presets learn are those of the stored validations (test/bench/results, written by
// test/bench/small-quickstarts.mjs), and every seed of the vision preset gains at least 25 points.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface Validation {
  seed: string;
  step: string;
  success: number;
}

function validations(name: string): Map<string, Validation[]> {
  const [, ...lines] = readFileSync(`test/bench/results/${name}.csv`, 'utf8').trimEnd().split('\n');
  const bySeed = new Map<string, Validation[]>();
  for (const line of lines) {
    const [, seed, , step, success] = line.split(',');
    bySeed.set(seed, [...(bySeed.get(seed) ?? []), { seed, step, success: Number(success) }]);
  }
  return bySeed;
}

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

describe('stored validations of three seeds', () => {
  it.each(['10000', '20000', '30000'])('of self-play in Nim are the row of seed %s in its page', seed => {
    const page = readFileSync('docs/environments/nim.md', 'utf8');
    const shares = validations('nim')
      .get(seed)!
      .map(({ success }) => percent(success));
    expect(page).toContain(`| ${seed} | ${shares.join(' | ')} |`);
  });

  it.each(['10000', '20000', '30000'])('of visual-sokoban are the row of seed %s in PERFORMANCE.md', seed => {
    const shares = validations('visual-sokoban')
      .get(seed)!
      .map(({ success }) => success);
    const gain = 100 * (shares.at(-1)! - shares[0]);
    const row = `| ${seed} | ${shares.map(percent).join(' | ')} | +${gain.toFixed(1)} |`;
    expect(readFileSync('docs/PERFORMANCE.md', 'utf8')).toContain(row);
  });

  it.each(['10000', '20000', '30000'])('of quickstart-vision are the row of seed %s in PERFORMANCE.md', seed => {
    const curve = validations('quickstart-vision').get(seed)!;
    const [first, last] = [curve[0].success, curve.at(-1)!.success];
    expect(last - first).toBeGreaterThanOrEqual(0.25);
    const row = readFileSync('docs/PERFORMANCE.md', 'utf8')
      .split('\n')
      .find(line => line.startsWith(`| ${seed} `) && line.includes(`${percent(first)} → ${percent(last)}`))!;
    expect(row).toContain(`+${(100 * (last - first)).toFixed(1)}`);
    expect(row).toContain(` ${percent(curve.find(({ step }) => step === '8')!.success)} |`);
  });
});
