// DeepCoder (RAGEN): a programming task. The answer is a Python or JavaScript program or function; the reward is the
// share of the task's tests that the answer passes. By default, programs run in isolation, and the environment fails to
// load if isolation is unavailable. sandbox.ts lists what the isolation covers. The built-in tasks are in
// media/data/deepcoder; RAGEN uses agentica-org/DeepCoder-Preview-Dataset from the Hugging Face Hub.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openDataSet } from '../api/data-set';
import { defineEnvironment, MissingDependency } from '../api/environment';
import { codeTool } from '../api/tools/code-tool';
import { PythonRandom } from '../api/random/python-random';
import { inputText, isOutput, isReturned, problemOf, type Problem } from './problems';
import { cut, mishapOf, requireInterpreter, runnerFor, type Interpreter } from './interpreter';
import { callInput, codeOf, returnedIn, sourceOf, withStarter, type Language } from './programs';
import { runProgram } from './sandbox';

const config = z.strictObject({
  render_mode: z.literal('text').default('text'),
  max_steps: z.int().min(1).default(1),
  invalid_action_score: z.number().default(0),
  dataset_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file or folder with the columns "problem" and "tests", or a data set of the hub; null: the shipped tasks are used',
    ),
  cache_dir: z.string().nullable().default(null).describe('no effect: downloads are stored in the Hugging Face cache'),
  split: z
    .string()
    .nullable()
    .default(null)
    .describe('split to read; null: the split "train" is read for training, "test" for validation'),
  language: z
    .enum(['python', 'javascript'])
    .default('python')
    .describe('language that is assumed for an answer whose code fence names no language'),
  isolation: z
    .enum(['bubblewrap', 'none'])
    .default('bubblewrap')
    .describe(
      'bubblewrap: the programs in answers run isolated by bubblewrap; none: they run without isolation, with your own user permissions',
    ),
  test_timeout: z.number().positive().default(3).describe('timeout in seconds of one test'),
  total_timeout: z
    .number()
    .positive()
    .default(8)
    .describe('timeout in seconds for all tests of an answer; tests that have not run by then fail'),
  memory_mb: z.int().min(64).default(512).describe('memory limit of one test in MiB'),
  max_tests: z.int().min(1).nullable().default(null).describe('maximum number of tests per task; null: all tests run'),
  python_path: z
    .string()
    .nullable()
    .default(null)
    .describe('path of python3; null: python3 is searched under /usr, then on the PATH'),
  node_path: z
    .string()
    .nullable()
    .default(null)
    .describe('path of node; null: node is searched under /usr, then on the PATH'),
  code_tool: z
    .boolean()
    .default(false)
    .describe('true: the model may run programs by a tool before it answers, in the same isolation and limits'),
});
type Config = z.infer<typeof config>;
type Mode = 'train' | 'val';

const shipped = fileURLToPath(new URL('../../media/data/deepcoder', import.meta.url));
const remedy =
  'set env_config.dataset_path to a file or folder with the columns "problem" and "tests", to agentica-org/DeepCoder-Preview-Dataset, or to null for the shipped tasks';

const tasks = ({ dataset_path, split }: Config, mode: Mode) =>
  openDataSet(dataset_path ?? shipped, { split: split ?? (mode === 'val' ? 'test' : 'train'), remedy });

/** Returns the task that a seed selects. The index of its row is the number that CPython's `randint` draws. */
async function taskOf(config: Config, seed: number, mode: Mode): Promise<Problem> {
  const set = await tasks(config, mode);
  const row = await set.row(new PythonRandom(seed).randint(0, set.length - 1));
  try {
    const task = problemOf(row);
    return config.max_tests === null ? task : { ...task, tests: task.tests.slice(0, config.max_tests) };
  } catch (error) {
    throw new MissingDependency(
      `cannot use a row of ${config.dataset_path}, which has ${(error as Error).message}`,
      remedy,
    );
  }
}

const interpreterOf = (language: Language, config: Config): Interpreter => ({
  language,
  path: language === 'python' ? config.python_path : config.node_path,
  isolation: config.isolation,
  limits: limitsOf(config),
});

const limitsOf = ({ test_timeout, memory_mb }: Config) => ({ seconds: test_timeout, megabytes: memory_mb });

interface Verdict {
  passed: number;
  /** Whether the program exited by itself with code 0 in at least one test. */
  runnable: boolean;
  /** The reason why the first failing test failed; empty if all tests pass. */
  detail: string;
}

/** Runs the tests in order until all have run or the total timeout expires. */
async function judge(answer: string, task: Problem, config: Config): Promise<Verdict> {
  const { code, language } = codeOf(answer, config.language);
  const whole = language === 'python' ? withStarter(code, task.starter) : code;
  const source = sourceOf(whole, language, task.functionName);
  const program = { ...runnerFor(interpreterOf(language, config)), source };
  const limits = limitsOf(config);
  const deadline = performance.now() + config.total_timeout * 1000;
  const verdict: Verdict = { passed: 0, runnable: false, detail: '' };
  for (const [i, { input, expected }] of task.tests.entries()) {
    const left = (deadline - performance.now()) / 1000;
    const setDetail = (what: string) => void (verdict.detail ||= `Test ${i + 1} of ${task.tests.length}: ${what}`);
    if (left <= 0) {
      setDetail(`not run within ${config.total_timeout} seconds of all tests.`);
      break;
    }
    const stdin = task.functionName ? callInput(input) : inputText(input);
    const outcome = await runProgram(
      { ...program, stdin },
      { ...limits, seconds: Math.min(limits.seconds, left) },
      config.isolation,
    );
    if (outcome.by !== 'exit' || outcome.code !== 0) {
      setDetail(mishapOf(outcome, limits));
      continue;
    }
    verdict.runnable = true;
    const returned = task.functionName ? returnedIn(outcome.stdout) : undefined;
    if (task.functionName ? returned && isReturned(returned, expected) : isOutput(outcome.stdout, expected))
      verdict.passed++;
    else if (task.functionName && !returned) setDetail(`${task.functionName} did not return.`);
    else
      setDetail(`expected ${cut(inputText(expected).trim())}, got ${cut((returned?.text ?? outcome.stdout).trim())}.`);
  }
  return verdict;
}

/** Returns the text of a task for the model: problem, and starter code or function name. */
const observationOf = ({ text, starter, functionName }: Problem): string =>
  text.trim() +
  (starter.trim() === '' ? '' : `\n\nStarter code:\n${starter.replace(/^\n+|\s+$/g, '')}`) +
  (functionName === undefined
    ? '\n\nRead from standard input and write to standard output.'
    : starter.trim() === ''
      ? `\n\nThe function is called ${functionName}.`
      : '');

export default defineEnvironment({
  name: 'deepcoder',
  config,
  wholeAnswer: true,
  instruction: ({ language }) =>
    `Solve the programming task in ${language === 'python' ? 'Python' : 'JavaScript'}.` +
    ' Answer with the complete code and nothing else, inside <answer> and </answer>.',
  patience: ({ total_timeout }) => total_timeout * 1000 + 5000,

  async dependencies(config) {
    for (const mode of ['train', 'val'] as const) await tasks(config, mode);
    await requireInterpreter(interpreterOf(config.language, config));
  },

  create(config) {
    let task: Problem;
    let steps = 0;
    let over = false;
    let observation = '';

    return {
      ...(config.code_tool && { tools: { run: codeTool(interpreterOf(config.language, config)) } }),

      async reset({ seed, mode = 'train' }) {
        task = await taskOf(config, seed, mode);
        steps = 0;
        over = false;
        observation = observationOf(task);
        return { observation };
      },

      async step(action) {
        if (over || steps >= config.max_steps) {
          const info = { action_is_valid: false, action_is_effective: false, success: false };
          return { observation, reward: 0, terminated: over, truncated: !over, info };
        }
        const answer = String(action);
        steps++;
        const isLast = steps >= config.max_steps;
        if (answer.trim() === '') {
          observation = `${observationOf(task)}\n\nFeedback: that is no program.`;
          const info = { action_is_valid: false, action_is_effective: false, success: false };
          return { observation, reward: config.invalid_action_score, terminated: false, truncated: isLast, info };
        }
        const { passed, runnable, detail } = await judge(answer, task, config);
        const total = task.tests.length;
        const success = total > 0 && passed === total;
        const reward = total > 0 ? passed / total : 0;
        over = success || isLast;
        const feedback = `${passed} of ${total} tests passed.${detail === '' ? '' : ` ${detail}`}`;
        observation = success
          ? 'Correct!'
          : over
            ? `Incorrect. ${feedback}`
            : `${observationOf(task)}\n\nFeedback: ${feedback}`;
        return {
          observation,
          reward,
          terminated: over,
          truncated: false,
          info: {
            action_is_valid: true,
            action_is_effective: passed > 0,
            success,
            passed_tests: passed,
            total_tests: total,
            runnable,
            pass_reward: reward,
            detail,
          },
        };
      },

      render: () => observation,
      solve: () => (over ? [] : task.solution === undefined ? undefined : [task.solution]),
    };
  },
});
