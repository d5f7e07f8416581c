// Schema of the section `claim` of a sweep file: a published claim, and the tests that decide it. The tests are written
// before the runs are made, so the file states beforehand which results count as reproduced, as the opposite, and as not
// reproduced. claim-verdict.ts evaluates the tests.
import { z } from 'zod';
import { alarmNames } from '../alarm-rules';

/**
 * Ways to reduce a series to one number. `first` and `last` are means over `window` values at the ends; `best` and
 * `worst` are the largest and smallest mean over `window` neighbouring values; `mean` is over all values. `change` is
 * last − first, `gain` is best − first, `kept` is last ÷ best. `until` is the number of steps before a lasting fall
 * below `share` of the best value, or the run's length without such a fall. `lead` is the number of steps by which this
 * fall comes before the lasting fall of the metric `before`.
 */
export const reductions = [
  'first',
  'last',
  'best',
  'worst',
  'mean',
  'change',
  'gain',
  'kept',
  'until',
  'lead',
] as const;
export type Reduction = (typeof reductions)[number];

const key = z.string().min(1);

export const measureSchema = z
  .strictObject({
    metric: key.describe('key of metrics.jsonl, or `success` for the mean validation success over all tags'),
    over: key.optional().describe('key whose value divides the metric in each step'),
    take: z.enum(reductions).default('last').describe('how the series is reduced to one number'),
    window: z.int().min(1).default(3).describe('number of neighbouring values that are averaged'),
    from: z.int().min(0).default(0).describe('first step that is used'),
    share: z.number().gt(0).lt(1).default(0.5).describe('share of the best value that a lasting fall goes below'),
    before: key.optional().describe('with `take: lead`: the metric that falls later'),
  })
  .refine(({ take, before }) => (take === 'lead') === (before !== undefined), {
    message: 'take: lead needs the key `before`, and only lead uses it',
  });
export type Measure = z.infer<typeof measureSchema>;

const common = {
  name: key.describe('what the test shows, as a statement that is true if the claim is reproduced'),
  required: z
    .boolean()
    .default(false)
    .describe('whether the test checks the setting: if it fails, the experiment cannot decide the claim'),
};

const testSchema = z.discriminatedUnion('test', [
  z.strictObject({
    ...common,
    test: z.literal('difference').describe('measure in `arm` minus measure in `against`, paired by seed'),
    arm: key,
    against: key,
    measure: measureSchema,
    expect: z.enum(['higher', 'lower', 'equal']),
    least: z.number().min(0).default(0).describe('smallest difference that counts; for `equal`, the largest allowed'),
  }),
  z
    .strictObject({
      ...common,
      test: z.literal('level').describe('measure in `arm` against fixed bounds'),
      arm: key,
      measure: measureSchema,
      above: z.number().optional(),
      below: z.number().optional(),
    })
    .refine(({ above, below }) => above !== undefined || below !== undefined, { message: 'give above or below' }),
  z
    .strictObject({
      ...common,
      test: z.literal('trend').describe('Spearman’s correlation of the measure with the position in a list'),
      arm: key.optional().describe('with `metrics`: the arm whose metrics are compared; all arms if it is left out'),
      metrics: z.array(key).min(3).optional().describe('metrics of one run, in order'),
      arms: z.array(key).min(3).optional().describe('arms, in order; the measure is compared within each seed'),
      measure: measureSchema,
      expect: z.enum(['rises', 'falls']),
    })
    .refine(({ metrics, arms }) => (metrics === undefined) !== (arms === undefined), {
      message: 'give either metrics or arms',
    }),
  z.strictObject({
    ...common,
    test: z.literal('correlation').describe('Spearman’s correlation over the steps of all runs, clustered by run'),
    x: key.describe('metric that should predict y'),
    y: key.default('success'),
    against: key.optional().describe('metric that should predict y less well than x'),
    arms: z.array(key).optional().describe('arms that are used; all arms if it is left out'),
    expect: z.enum(['positive', 'negative']),
  }),
  z.strictObject({
    ...common,
    test: z.literal('alarms').describe('whether alarms come before success has lost half of its gain'),
    arms: z
      .strictObject({ collapsing: z.array(key).min(1), healthy: z.array(key).min(1) })
      .optional()
      .describe(
        'arms that collapse and arms that do not; by default, all runs, divided by whether they kept their gain',
      ),
    alarms: z.array(z.enum(alarmNames)).min(1),
    from: z.int().min(0).default(0).describe('first step at which a run can collapse'),
    detected: z.number().min(0).max(1).default(0.8).describe('smallest share of collapsed runs with an early alarm'),
    false_alarms: z.number().min(0).max(1).default(0.2).describe('largest share of healthy runs with an alarm'),
  }),
]);
export type ClaimTest = z.infer<typeof testSchema>;

export const claimSchema = z.strictObject({
  number: z.int().min(1),
  title: key.describe('the claim as one statement'),
  paper: key.describe('the numbers of the paper, and its setting'),
  runs_of: z.array(key).default([]).describe('names of other sweeps whose runs are used, too'),
  tests: z.array(testSchema).min(1),
});
export type Claim = z.infer<typeof claimSchema>;

/** Returns the arms that a test names. */
export function armsOf(test: ClaimTest): string[] {
  switch (test.test) {
    case 'difference':
      return [test.arm, test.against];
    case 'level':
      return [test.arm];
    case 'trend':
      return [...(test.arms ?? []), ...(test.arm === undefined ? [] : [test.arm])];
    case 'correlation':
      return test.arms ?? [];
    case 'alarms':
      return test.arms ? [...test.arms.collapsing, ...test.arms.healthy] : [];
  }
}
