// Invariants of every episode of countdown, metamathqa and static, for any seed and answers; the solver of each; and
// the value of an expression compared with a direct computation.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import countdown, { isSignedSum } from '../../../envs/countdown/index';
import { evaluate } from '../../../envs/countdown/expression';
import { solveCountdown } from '../../../envs/countdown/solver';
import metamathqa from '../../../envs/metamathqa/index';
import staticQuestions from '../../../envs/static/index';

const seeds = fc.nat({ max: 0xffffffff });
const answers = fc.array(
  fc.oneof(
    fc.string(),
    fc.integer(),
    fc.integer({ min: -20, max: 200 }).map(String),
    fc.constantFrom('A', 'B', 'C', 'D', '1 + 2', '(3'),
  ),
  { maxLength: 8 },
);
const games = fc.oneof(
  fc.constant(() => countdown.create(countdown.config.parse({}))),
  fc.constant(() => metamathqa.create(metamathqa.config.parse({}))),
  fc
    .constantFrom('metamathqa', 'gsm8k', 'mmlu')
    .map(dataset_name => () => staticQuestions.create(staticQuestions.config.parse({ dataset_name }))),
);

describe('every question', () => {
  test('accepts any answers, gives no reward after the end, and replays equally in a reused and in a fresh instance', async () => {
    await fc.assert(
      fc.asyncProperty(games, seeds, answers, async (create, seed, given) => {
        const play = async (environment: ReturnType<typeof create>) => {
          const shown: unknown[] = [await environment.reset({ seed })];
          let over = false;
          for (const answer of given) {
            const step = await environment.step(answer);
            expect(Number.isFinite(step.reward)).toBe(true);
            expect(step.truncated).toBe(false);
            if (step.info.success) expect(step.terminated).toBe(true);
            if (over) expect([step.reward, step.terminated]).toEqual([0, true]);
            over = step.terminated;
            shown.push(step);
          }
          return JSON.stringify(shown);
        };
        const used = create();
        const first = await play(used);
        expect(await play(used)).toBe(first);
        expect(await play(create())).toBe(first);
      }),
    );
  });

  test('is answered correctly by its solver, for the full reward, or for half the reward after a wrong answer', async () => {
    await fc.assert(
      fc.asyncProperty(games, seeds, async (create, seed) => {
        const environment = create();
        await environment.reset({ seed });
        const [right] = (await environment.solve!())!;
        expect(await environment.step(right)).toMatchObject({ reward: 1, terminated: true, info: { success: true } });
        expect(await environment.solve!()).toEqual([]);
        await environment.reset({ seed });
        const wrong = await environment.step('no');
        expect(wrong).toMatchObject({ reward: 0, info: { success: false } });
        if (!wrong.terminated) expect((await environment.step(right)).reward).toBe(0.5);
      }),
    );
  });
});

describe('countdown', () => {
  const numbers = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 4 });

  test('has a solver whose answers use all numbers and reach the target, and which finds an answer whenever signs suffice', () => {
    let solved = 0;
    // Half of the targets are signed sums of the numbers, which have a solution.
    const problems = numbers.chain(nums =>
      fc.record({
        nums: fc.constant(nums),
        target: fc.oneof(
          fc.integer({ min: 1, max: 100 }),
          fc
            .array(fc.boolean(), { minLength: nums.length, maxLength: nums.length })
            .map(signs => Math.abs(nums.reduce((sum, n, i) => sum + (signs[i] ? n : -n), 0)) || 1),
        ),
      }),
    );
    fc.assert(
      fc.property(problems, ({ nums, target }) => {
        const found = solveCountdown(nums, target);
        if (found === undefined) {
          expect(isSignedSum({ target, nums })).toBe(false);
          return;
        }
        solved++;
        expect(
          found
            .match(/\d+/g)!
            .map(Number)
            .sort((a, b) => a - b),
        ).toEqual([...nums].sort((a, b) => a - b));
        expect(Number(evaluate(found))).toBeCloseTo(target, 9);
      }),
      { numRuns: 200 },
    );
    expect(solved).toBeGreaterThan(20);
  });

  test('finds products and quotients, with parentheses where needed', () => {
    expect(solveCountdown([8, 3, 8, 3], 24)).toBe('8 / (3 - 8 / 3)');
    expect(solveCountdown([2, 3], 7)).toBeUndefined();
    expect(evaluate(solveCountdown([7, 2, 5, 1], 60)!)).toBe(60n);
  });

  /** An expression with its exact value, without division. */
  const { tree } = fc.letrec<{ tree: [string, bigint] }>(tie => ({
    tree: fc.oneof(
      { depthSize: 'small' },
      fc.nat({ max: 99 }).map((n): [string, bigint] => [`${n}`, BigInt(n)]),
      fc
        .tuple(tie('tree'), fc.constantFrom('+', '-', '*'), tie('tree'))
        .map(([[a, x], sign, [b, y]]): [string, bigint] => [
          `(${a}${sign} ${b})`,
          sign === '+' ? x + y : sign === '-' ? x - y : x * y,
        ]),
      tie('tree').map(([a, x]): [string, bigint] => [`-${a}`, -x]),
    ),
  }));

  test('evaluates sums and products exactly, and any text to one value or none', () => {
    fc.assert(fc.property(tree, ([text, value]) => void expect(evaluate(text)).toBe(value)));
    const signs = fc.string({ unit: fc.constantFrom(...'0123456789+-*/%().~_ e#\n'), maxLength: 30 });
    fc.assert(
      fc.property(fc.oneof(signs, fc.string()), text =>
        ['bigint', 'number', 'undefined'].includes(typeof evaluate(text)),
      ),
    );
  });
});
