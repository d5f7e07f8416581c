// The text-only proxy of I(X;Z): values by hand, its order on texts whose dependence is known, its bounds, and the figures
// that docs/METRICS.md names.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededRandom } from '../../../../extension/common/seeded-random';
import { promptInformation, type PromptedThought } from '../../../../extension/trainer/diagnostics/prompt-information';
import { textProxyFigures } from '../../../../extension/run-data/text-proxy';
import { correlation, proxyCsv, readProxyCsv } from '../../../experiments/proxy-panel';

const information = (thoughts: readonly PromptedThought[]): number | undefined =>
  promptInformation(thoughts)['thoughts/prompt_information'];
const under = (prompt: number, ...thoughts: string[]): PromptedThought[] =>
  thoughts.map(thought => ({ prompt, thought }));

it('is the gain of knowing the prompt, in nats per word', () => {
  // Each text is one word. Without the text itself, the words of all prompts are {a, b, b}: P(a) = (1 + 1)/(3 + 2) = 0.4,
  // after the beginning of a text (1 + 2·0.4)/(3 + 2) = 0.36, and 1/3 without smoothing. The best mixture of these two is
  // 0.36. Under the same prompt P(a) = 1, so the gain is ln(1/0.36).
  expect(information([...under(1, 'a', 'a'), ...under(2, 'b', 'B')])).toBeCloseTo(Math.log(1 / 0.36), 1);
});

it('is 0 for equal thoughts under all prompts, and for thoughts that no other thought predicts', () => {
  expect(information([...under(1, 'go up now', 'go up now'), ...under(2, 'go up now', 'go up now')])).toBeLessThan(
    1e-3,
  );
  expect(information([...under(1, 'a b', 'c d'), ...under(2, 'e f', 'g h')])).toBeCloseTo(0, 9);
});

it('needs two thoughts under each of two prompts', () => {
  expect(promptInformation([])).toEqual({});
  expect(promptInformation(under(1, 'a', 'a', 'a'))).toEqual({});
  expect(promptInformation([...under(1, 'a', 'a'), ...under(2, 'a'), ...under(3, ' ', 'b')])).toEqual({});
});

/** Thoughts of which a share names a place that the prompt determines; the others guess. */
function mixed(share: number, prompts = 16): PromptedThought[] {
  const random = seededRandom(3);
  const pick = (n: number): number => Math.floor(random() * n);
  return Array.from({ length: prompts * 8 }, (_, i) => {
    const prompt = i % prompts;
    const place = random() < share ? prompt : pick(prompts);
    return { prompt, thought: `I am at (${place}, ${(3 * place) % 7}), so I go ${['up', 'down', 'left'][pick(3)]}.` };
  });
}

it('grows with the share of thoughts that depend on their prompt, and falls to 0 with it', () => {
  const values = [0, 0.25, 0.5, 0.75, 1].map(share => information(mixed(share))!);
  expect(values).toEqual([...values].sort((a, b) => a - b));
  expect(values[0]).toBeLessThan(0.01);
  expect(values[4]).toBeGreaterThan(0.25);
});

it('separates signs and characters of scripts without spaces', () => {
  const chinese = [...under(1, '我在左边', '我在左边'), ...under(2, '我在右边', '我在右边')];
  expect(information(chinese)).toBeGreaterThan(0.1);
  expect(information(chinese)).toBeLessThan(0.7); // three of four characters are the same under both prompts
});

it('is finite, at least 0, the same for each order of the prompts’ numbers, and bounded by ln of their number', () => {
  const texts = fc.array(fc.record({ prompt: fc.integer({ min: 0, max: 5 }), thought: fc.string({ maxLength: 60 }) }), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(texts, thoughts => {
      const value = information(thoughts);
      if (value === undefined) return;
      expect(value).toBeGreaterThanOrEqual(0);
      expect(value).toBeLessThan(20);
      expect(information(thoughts.map(each => ({ ...each, prompt: -each.prompt })))).toBe(value);
    }),
  );
});

it('reads at most 64 prompts, 8 thoughts under each and 256 words of each', () => {
  const word = 'word '.repeat(256);
  const long = [...under(1, `${word} one`, `${word} one`), ...under(2, `${word} two`, `${word} two`)];
  expect(information(long)).toBe(0); // the words that differ are beyond the limit
  const many = Array.from({ length: 65 }, (_, prompt) => under(prompt, `place ${prompt}`, `place ${prompt}`)).flat();
  expect(information(many)).toBe(information(many.slice(0, 128))); // prompts 0 to 63 of 65, at equal distances
});

it('has the correlation with I(X;Z) that docs/METRICS.md names', () => {
  const text = readFileSync('test/experiments/results/7-text-proxy.csv', 'utf8');
  const steps = readProxyCsv(text);
  expect(proxyCsv(steps)).toBe(text);
  const guide = readFileSync('docs/METRICS.md', 'utf8');
  for (const family of ['first', 'trajectory'] as const) {
    const { all, low, high, within, diagnoses, runs } = correlation(steps, 'proxy', family);
    const cell = `${all.toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)}) | ${within.toFixed(2)} | ${diagnoses} | ${runs} |`;
    expect(guide).toContain(cell);
  }
  const { all, low, high, diagnoses, runs } = correlation(steps, 'proxy', 'first');
  const [shown, from, to] = [all, low, high].map(x => Number(x.toFixed(2)));
  expect(textProxyFigures).toEqual({ correlation: shown, low: from, high: to, diagnoses, runs });
});
