// Countdown (RAGEN): write one expression that uses each given number once and equals the target. The reward is 1 if
// the expression equals the target, 0.1 if it uses the given numbers but has another value, otherwise 0. The seed
// modulo the number of problems selects a row of a data set. The built-in problems are in media/data/countdown*.jsonl;
// those for validation have their own file. RAGEN uses Jiayi-Pan/Countdown-Tasks-3to4 from the Hugging Face Hub.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { lookForDataSet, openDataSet, openingPatience } from '../api/data-set';
import { defineEnvironment, MissingDependency } from '../api/environment';
import { evaluate } from './expression';
import { solveCountdown } from './solver';

const config = z.strictObject({
  train_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file or folder with the columns "target" and "nums", or a data set of the hub (hf://datasets/OWNER/NAME); null: the shipped problems are used',
    ),
  val_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file, folder or hub data set with the validation problems; null: the problems of train_path are used, or the shipped validation problems if train_path is null too',
    ),
  problems: z
    .enum(['usual', 'small'])
    .default('usual')
    .describe(
      'the shipped problems that are used if train_path is null; usual: three or four numbers up to 99; small: two or three numbers up to 15',
    ),
  max_instances: z.int().min(1).default(20000).describe('maximum number of rows to read, starting with the first'),
  solvable_filter: z
    .boolean()
    .default(true)
    .describe('true: only problems that can be solved with sums and differences are used'),
  score: z.number().default(1),
  format_score: z
    .number()
    .default(0.1)
    .describe('reward for an expression that uses the right numbers but has a wrong value'),
  max_steps: z.literal(1).default(1),
  render_mode: z.literal('text').default('text'),
});
type Config = z.infer<typeof config>;

interface Problem {
  target: number;
  nums: number[];
}

const shipped = (name: string) => fileURLToPath(new URL(`../../media/data/${name}.jsonl`, import.meta.url));
const remedy =
  'set env_config.train_path to a file or folder with the columns "target" and "nums", to hf://datasets/Jiayi-Pan/Countdown-Tasks-3to4, or to null for the shipped problems';
const source = { split: 'train', remedy };
const read = new Map<string, Promise<Problem[]>>();

function pathOf(
  { train_path, val_path, problems }: Pick<Config, 'train_path' | 'val_path' | 'problems'>,
  mode: 'train' | 'val',
): string {
  const name = problems === 'small' ? 'countdown-small' : 'countdown';
  const own = train_path ?? shipped(mode === 'val' ? `${name}-val` : name);
  return mode === 'val' ? (val_path ?? own) : own;
}

/** Returns the problems of a configuration for training or validation; each file is read once. */
function problemsOf(
  { train_path, val_path, problems: shippedProblems, max_instances, solvable_filter }: Config,
  mode: 'train' | 'val' = 'train',
): Promise<Problem[]> {
  const path = pathOf({ train_path, val_path, problems: shippedProblems }, mode);
  const key = JSON.stringify([path, max_instances, solvable_filter]);
  const problems = read.get(key) ?? readProblems(path, max_instances, solvable_filter);
  read.set(key, problems);
  problems.catch(() => read.delete(key));
  return problems;
}

async function readProblems(path: string, most: number, solvable: boolean): Promise<Problem[]> {
  const rows = await openDataSet(path, source);
  const problems: Problem[] = [];
  for (let i = 0; i < Math.min(rows.length, most); i++) {
    const { target, nums } = await rows.row(i);
    if (!Number.isInteger(target) || !Array.isArray(nums) || !nums.every(Number.isInteger))
      throw new MissingDependency(
        `cannot use row ${i} of ${path}, whose columns "target" and "nums" must contain integers`,
        remedy,
      );
    const problem = { target: target as number, nums: nums as number[] };
    if (!solvable || isSignedSum(problem)) problems.push(problem);
  }
  if (problems.length === 0)
    throw new MissingDependency(`cannot use ${path}, because none of its problems can be solved`, remedy);
  return problems;
}

/**
 * Whether a problem passes RAGEN's test of solvability: whether its first four numbers, each with a plus or a minus
 * sign, can sum to the target.
 */
export function isSignedSum({ target, nums }: Problem): boolean {
  let sums = [0];
  for (const number of nums.slice(0, 4)) sums = sums.flatMap(sum => [sum + number, sum - number]);
  return sums.includes(target);
}

/** Whether an answer contains exactly the given numbers, in any order. */
function usesNumbers(answer: string, nums: readonly number[]): boolean {
  const sorted = (numbers: readonly bigint[]) => [...numbers].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).join();
  return sorted((answer.match(/\d+/g) ?? []).map(BigInt)) === sorted(nums.map(BigInt));
}

export default defineEnvironment({
  name: 'countdown',
  config,
  instruction:
    'Build an arithmetic expression from the listed numbers that equals the target. Use each number exactly once, with +, -, *, / and' +
    ' parentheses. For example, for the numbers 3, 5, 2 and the target 4: <answer> 2 + 5 - 3 </answer>.',
  patience: ({ train_path, val_path }) => (train_path === null && val_path === null ? 0 : openingPatience),
  dependencies: async config => {
    for (const mode of ['train', 'val'] as const)
      if (await lookForDataSet(pathOf(config, mode), source)) await problemsOf(config, mode);
  },

  create(config) {
    let problem: Problem;
    let observation = '';
    let ended: boolean | undefined; // whether the reward was the full score; undefined until an answer is given

    return {
      async reset({ seed, mode }) {
        const problems = await problemsOf(config, mode);
        problem = problems[seed % problems.length];
        observation = `Target: ${problem.target}, nums: [${problem.nums.join(', ')}]`;
        ended = undefined;
        return { observation };
      },

      step(action) {
        let reward = 0;
        const begun = ended === undefined;
        if (begun) {
          const answer = String(action);
          const value = usesNumbers(answer, problem.nums) ? evaluate(answer) : undefined;
          const right = value !== undefined && Math.abs(Number(value) - problem.target) < 1e-5;
          if (usesNumbers(answer, problem.nums)) reward = right ? config.score : config.format_score;
          ended = reward === config.score;
          observation = `Your answer get ${reward} points.`;
        }
        const info = { action_is_effective: reward > 0, action_is_valid: begun, success: ended };
        return { observation, reward, terminated: true, truncated: false, info };
      },

      render: () => observation,
      solve() {
        if (ended !== undefined) return ended ? [] : undefined;
        const expression = solveCountdown(problem.nums, problem.target);
        return expression === undefined ? undefined : [expression];
      },
    };
  },
});
