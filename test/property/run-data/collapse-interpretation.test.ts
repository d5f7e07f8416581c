// For any logged metrics, the collapse diagnosis is deterministic, contains only finite numbers, and links to existing
// targets.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Evidence } from '../../../extension/run-data/interpretation/evidence';
import { interpret } from '../../../extension/run-data/interpretation/interpretation';
import { DiagnosisHistory, formatRegime } from '../../../extension/cli/output/run-findings';
import { judgedPath, type PathPoint } from '../../../extension/run-data/collapse-path';
import { regimes } from '../../../extension/run-data/regimes';

const value = fc.oneof(
  { weight: 5, arbitrary: fc.double({ min: -3, max: 5, noNaN: true }) },
  fc.constantFrom(0, NaN, 1e-300, 1e9),
);
const estimate = fc.record({ value, low: value, high: value });
const finite = fc.double({ min: -3, max: 5, noNaN: true });
const point = fc.record({
  step: fc.nat(10_000),
  entropy: fc.record({ value: finite, low: value, high: value }),
  information: fc.record({ value: finite, low: value, high: value }),
  bound: fc.oneof(value, fc.constantFrom(0, Math.log(2), Math.log(16))),
  retrieval: estimate,
  chance: value,
  thoughts: value,
});
const points = fc.array(fc.record({ step: fc.nat(10_000), value: finite }), { maxLength: 40 });
const evidence: fc.Arbitrary<Evidence> = fc.record({
  path: fc.array(point, { maxLength: 20 }).map(judgedPath),
  filter: fc.constant(null),
  policy: fc.option(
    fc.record({
      kl_loss_coef: fc.constantFrom(0, 0.001),
      kl_coef: fc.constantFrom(0, 0.001),
      entropy_coeff: fc.constantFrom(0, 0.001),
      adv_estimator: fc.constantFrom('gae', 'grpo'),
      clip_ratio_high: fc.constantFrom(0.2, 0.28),
    }),
  ),
  missing: fc.constantFrom(
    null,
    { text: 'waiting' },
    { text: 'off', override: 'collapse_detection.first_turn_enabled=true' },
  ),
  changes: fc.array(
    fc.record({ key: fc.constant('actor_rollout_ref.actor.optim.lr'), from: finite, to: finite, step: fc.nat(10_000) }),
    { maxLength: 3 },
  ),
  checkpoints: fc.option(fc.array(fc.nat(10_000), { maxLength: 3 })),
  rewardStd: points,
  tokenEntropy: points,
  gradientNorm: points,
  invalidAnswers: points,
  success: points,
  validation: points,
  thinking: points,
});

it('the texts contain no NaN or Infinity', () => {
  fc.assert(
    fc.property(evidence, given => {
      const interpretation = interpret(given);
      const texts = [
        interpretation.headline,
        interpretation.sentence,
        interpretation.why,
        ...interpretation.signs.map(s => s.text),
        ...interpretation.advice.map(a => a.text),
      ];
      for (const text of texts) expect(text).not.toMatch(/NaN|Infinity|undefined|null|–/);
      expect(interpretation.advice.length).toBeGreaterThan(0);
      expect(interpretation.why).not.toBe('');
      expect(interpret(structuredClone(given))).toEqual(interpretation);
      if (given.path.length === 0) expect(interpretation.confidence).toBe('none');
    }),
    { numRuns: 200 },
  );
});

/** A history of the kind that training produces: levels of I(X;Z) and H(Z|X) that hold for a few diagnoses each. */
const history: fc.Arbitrary<PathPoint[]> = fc
  .array(
    fc.record({
      diagnoses: fc.integer({ min: 1, max: 6 }),
      information: fc.constantFrom(0, 0.04, 0.08, 0.2, 0.6, 1.2, 2),
      entropy: fc.constantFrom(0.02, 0.2, 0.4, 0.9, 1.7),
      retrieval: fc.constantFrom(0.06, 0.3, 0.5, 0.7, 1),
      noise: fc.double({ min: 0.8, max: 1.25, noNaN: true }),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map(levels => levels.flatMap(level => Array.from({ length: level.diagnoses }, () => level)))
  .map(all =>
    judgedPath(
      all.map(({ information, entropy, retrieval, noise }, i) => {
        const around = (value: number) => ({ value, low: 0.9 * value, high: 1.1 * value });
        const shift = i % 2 === 0 ? noise : 1;
        return {
          ...{ step: 5 * i + 1, information: around(information * shift), entropy: around(entropy * shift) },
          ...{ bound: Math.log(16), retrieval: around(retrieval), chance: 1 / 16, thoughts: 1 },
        };
      }),
    ),
  );

const last = (path: readonly PathPoint[]): PathPoint => path[path.length - 1];

/** What a text states about the reasoning; null if it states nothing about it. */
const depends = (text: string): boolean | null =>
  /no longer depends|does not depend|no dependence|same text for all|template collapse|low[- ]entropy/.test(text)
    ? false
    : /differs? between prompts|depends? (only weakly )?on the prompt|diverse|compressed/.test(text)
      ? true
      : null;
const varies = (text: string): boolean | null =>
  /hardly varies|same text for all|compressed|low[- ]entropy/.test(text)
    ? false
    : /diverse|template|varies/.test(text)
      ? true
      : null;

it('caption, headline and advice state the same of any history, and so does the terminal', () => {
  fc.assert(
    fc.property(history, evidence, (path, other) => {
      const { caption, headline, sentence, why, advice } = interpret({ ...other, path });
      const { regime } = last(path).judgement;
      const dependent = regime === 'diverse reasoning' || regime === 'compressed reasoning';
      expect([depends(caption), depends(headline)]).toEqual([dependent, dependent]);
      const varied = regime === 'diverse reasoning' || regime === 'template collapse';
      for (const text of [caption, headline]) expect([varied, null]).toContain(varies(text));
      expect(why).toContain(`“${caption}”`);
      const texts = advice.map(({ text }) => text).join('\n');
      // Advice for a collapse needs a collapse, advice to wait needs a short history, and a diagnosed run needs no switch.
      if (dependent) expect(texts).not.toMatch(/if scores do not differ|whether the model writes thoughts/);
      if (path.length > 2) expect(texts).not.toMatch(/^Wait for/m);
      expect(texts).not.toMatch(/^(Enable|Select)/m);
      if (advice.some(({ text }) => text.startsWith('Change nothing'))) expect(advice).toHaveLength(1);
      if (/ yet$|from the start$/.test(headline)) expect(sentence).not.toContain('of its best value');
      // Each pair of a value and its step is a pair of the history.
      for (const [, value, step] of sentence.matchAll(/\(([\d.]+) at step (\d+)\)/g)) {
        const point = path.find(at => at.step === Number(step))!;
        expect(Number(value)).toBeCloseTo(point.entropy.value, 2);
      }
      expect(terminal(path)).toContain(caption);
    }),
    { numRuns: 500 },
  );
});

/** Returns the terminal's text for the newest diagnosis of a history. */
function terminal(path: readonly PathPoint[]): string {
  const history = new DiagnosisHistory();
  const name = 'collapse_trajectory_sample';
  const diagnoses = path.map(point =>
    history.add(point.step, {
      ...Object.fromEntries(
        (
          [
            ['mi_estimate', point.information],
            ['conditional_entropy_est', point.entropy],
            ['retrieval_accuracy', point.retrieval],
          ] as const
        ).flatMap(([key, { value, low, high }]) => [
          [`${name}/${key}`, value],
          [`${name}/${key}_ci_low`, low],
          [`${name}/${key}_ci_high`, high],
        ]),
      ),
      [`${name}/mi_upper_bound`]: point.bound,
      [`${name}/retrieval_chance_level`]: point.chance,
      [`${name}/regime`]: regimes.indexOf(point.judgement.regime) + 1,
      'thoughts/rate': point.thoughts,
    }),
  );
  return formatRegime(diagnoses.at(-1)!);
}

it('advice for a run without a diagnosis follows whether the run makes one', () => {
  const texts = (missing: Evidence['missing']): string[] => {
    const [given] = fc.sample(evidence, { numRuns: 1, seed: 1 });
    return interpret({ ...given, path: [], missing }).advice.map(({ text }) => text);
  };
  expect(texts({ text: 'from step 1 on' }).join()).not.toMatch(/Enable/);
  expect(texts({ text: 'off', override: 'collapse_detection.first_turn_enabled=true' }).at(-1)).toBe(
    'Enable the diagnosis of the reasoning in the next run (collapse_detection.first_turn_enabled=true)',
  );
});
