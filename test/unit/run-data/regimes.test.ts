// The rule of the regimes: case by case, for any numbers, and on the panel of real runs
// (test/experiments/results/5-regimes.csv).
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  judgeRegime,
  judgeRegimes,
  regimeRule,
  regimes,
  type RegimeMeasure,
} from '../../../extension/run-data/regimes';
import { groundedShare, promptSimilarity, similarity } from '../../experiments/panel-texts';
import { figures, halves, judgedSteps, panelCsv, readPanelCsv, trueRegimes } from '../../experiments/regime-panel';

const measure = (information: number, entropy: number): RegimeMeasure => ({
  information,
  informationLow: information - 0.1,
  entropy,
  retrieval: 0.1,
});
const labels = (measures: readonly RegimeMeasure[]) => judgeRegimes(measures).map(({ regime }) => regime);

describe('the rule of the regimes', () => {
  it.each([
    ['diverse reasoning', 1.2, 1],
    ['compressed reasoning', 1.2, 0.05],
    ['template collapse', 0.05, 1],
    ['low-entropy collapse', 0.05, 0.05],
  ])('names %s after a healthy beginning', (regime, information, entropy) => {
    const healthy = Array.from({ length: 4 }, () => measure(1, 1));
    const later = Array.from({ length: 3 }, () => measure(information, entropy));
    expect(labels([...healthy, ...later]).at(-1)).toBe(regime);
  });

  it('does not call a run collapsed that begins with little information and gains more', () => {
    const rising = [0.14, 0.2, 0.4, 0.6, 0.9, 1.1].map(information => measure(information, 1));
    expect(labels(rising)).toEqual(rising.map(() => 'diverse reasoning'));
  });

  it('calls reasoning that never says anything about its prompt a template', () => {
    expect(labels([measure(0.001, 1), measure(0, 1)])).toEqual(['template collapse', 'template collapse']);
  });

  it('does not call reasoning collapsed while its prompts are found again', () => {
    const found = [measure(1.5, 1), { ...measure(0.5, 1), retrieval: 0.9 }, { ...measure(0.5, 1), retrieval: 0.9 }];
    expect(labels(found).at(-1)).toBe('diverse reasoning');
  });

  it('gives less confidence to values close to a threshold', () => {
    const confidence = (information: number) =>
      judgeRegimes([measure(1.1, 2), measure(1.1, 2), measure(information, 2), measure(information, 2)]).at(-1)!
        .confidence;
    expect(confidence(0.05)).toBeGreaterThan(0.95);
    expect(confidence(regimeRule.share)).toBeLessThan(0.6);
    expect(confidence(1.1)).toBeGreaterThan(0.95);
  });

  it('judges by the estimate itself where no interval was computed', () => {
    const [judged] = judgeRegimes([{ information: 1, informationLow: NaN, entropy: 1, retrieval: NaN }]);
    expect(judged.thresholds.information).toBeCloseTo(regimeRule.share, 12);
  });

  it('keeps a history that JSON can hold', () => {
    const { history } = judgeRegime(null, { information: 0, informationLow: 0, entropy: 1, retrieval: NaN });
    expect(JSON.parse(JSON.stringify(history))).toEqual({ best: 0, information: 0, entropy: 1, retrieval: null });
    expect(judgeRegime(history, measure(0, 1)).judgement.regime).toBe('template collapse');
  });

  it('gives a regime, a probability and a finite threshold for any numbers, and never looks ahead', () => {
    const any = fc.record({
      information: fc.double({ min: -5, max: 10, noNaN: true }),
      informationLow: fc.oneof(fc.double({ min: -5, max: 10, noNaN: true }), fc.constant(NaN)),
      entropy: fc.double({ min: -1, max: 12, noNaN: true }),
      retrieval: fc.oneof(fc.double({ min: -1, max: 1, noNaN: true }), fc.constant(NaN)),
    });
    fc.assert(
      fc.property(fc.array(any, { maxLength: 20 }), fc.nat(20), (measures, cut) => {
        const judged = judgeRegimes(measures);
        for (const { regime, confidence, thresholds } of judged) {
          expect(regimes).toContain(regime);
          expect(confidence).toBeGreaterThanOrEqual(0.25);
          expect(confidence).toBeLessThanOrEqual(1);
          expect(thresholds.information).toBeGreaterThanOrEqual(regimeRule.floor);
        }
        expect(judgeRegimes(measures.slice(0, cut))).toEqual(judged.slice(0, cut));
      }),
    );
  });
});

describe('the truth of the panel', () => {
  const state = (row: number, column: number) => `Goal: (0, 0)\nPlayer: (${row}, ${column})\nHoles: (3, 3)`;
  const episode = (group_id: number, ...turns: [state: string, thought: string | null][]) => ({
    group_id,
    turns: turns.map(([state, thought], i) => ({ turn: i + 1, state, thought })),
  });

  it('counts the thoughts that name the player’s position', () => {
    const episodes = [
      episode(0, [state(1, 2), 'Me (1, 2), goal (0, 0): 1 up.'], [state(2, 2), 'Me (1, 2), goal (0, 0).']),
      episode(0, [state(1, 2), 'I guess Up.'], [state(0, 0), null]),
    ];
    expect(groundedShare(episodes)).toBe(0.25);
  });

  it('compares first thoughts under the same prompt alone', () => {
    const episodes = [
      episode(0, [state(1, 2), 'a b c d']),
      episode(0, [state(1, 2), 'a b x d']),
      episode(1, [state(1, 1), 'never compared with another group']),
    ];
    expect(promptSimilarity(episodes)).toBe(0.75);
    expect([similarity([], []), similarity(['a'], []), similarity(['a', 'b'], ['b'])]).toEqual([1, 0, 0.5]);
  });

  it('calls reasoning lost by its own best, and nothing where the texts do not decide', () => {
    const at = (grounded: number, alike: number) => ({
      step: 1,
      grounded,
      similarity: alike,
      information: 1,
      informationLow: 1,
      entropy: 1,
      retrieval: 0,
    });
    const steps = [at(0.2, 0.5), at(0.8, 0.5), at(0.5, 0.9), at(0.4, 0.5), at(0.6, 0.8), at(0.3, 0.5), at(0, 0.9)];
    expect(trueRegimes({ arm: 'a', seed: 1, steps })).toEqual([
      'diverse reasoning',
      'diverse reasoning',
      'compressed reasoning',
      null,
      null,
      'template collapse',
      'low-entropy collapse',
    ]);
  });
});

describe('the regimes of 42 runs', () => {
  const text = readFileSync(join(__dirname, '../../experiments/results/5-regimes.csv'), 'utf8');
  const panel = readPanelCsv(text);
  const { fit, check } = halves(panel);

  it('are of a panel of at least 40 runs with every regime in both halves', () => {
    expect(panel.length).toBeGreaterThanOrEqual(40);
    for (const half of [fit, check])
      for (const regime of regimes) expect(half.flatMap(trueRegimes), regime).toContain(regime);
    expect(panelCsv(panel)).toBe(text);
  });

  it('are right on the half that the rule was not fitted on', () => {
    const { balancedAccuracy, recall, calibrationError } = figures(check);
    expect(balancedAccuracy).toBeGreaterThanOrEqual(0.9);
    for (const regime of regimes) expect(recall[regime], regime).toBeGreaterThanOrEqual(0.85);
    expect(calibrationError).toBeLessThanOrEqual(0.05);
  });

  it('stay right where a diagnosis is made at every fourth step', () => {
    const sparse = check.map(run => ({ ...run, steps: run.steps.filter((_, i) => i % 2 === 0) }));
    expect(figures(sparse).balancedAccuracy).toBeGreaterThanOrEqual(0.9);
  });

  it('call no healthy run collapsed', () => {
    const healthy = panel.filter(({ arm }) => arm.startsWith('healthy'));
    const collapsed = healthy.flatMap(run => judgedSteps(run)).filter(({ label }) => label.endsWith('collapse'));
    expect(collapsed).toEqual([]);
  });
});
