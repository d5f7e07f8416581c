// Theorem proving in Lean, one tactic per step (RAGEN, Lean). Each request to Lean contains all accepted tactics,
// followed by the new one; the reward depends on Lean's verdict. Lean runs in another process: a Kimina server, or a
// REPL that this environment starts. The theorem for a seed is the one that CPython's `random.choice` selects with this
// seed.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openDataSet } from '../api/data-set';
import { defineEnvironment, MissingDependency, type StepResult } from '../api/environment';
import { PythonRandom } from '../api/random/python-random';
import { isAnswering, kiminaChecker } from './kimina-client';
import { isUnsolved, verdictOf, type Checker, type LeanMessage, type Verdict } from './lean-check';
import { numberedLines, partsOf, scriptOf, wrapped, type Theorem } from './proof';
import { replChecker } from './repl-client';

const config = z.strictObject({
  dataset_name_or_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file or folder with the column "formal_statement", or a data set of the hub; null: the shipped theorems are used',
    ),
  dataset_split: z
    .string()
    .default('train')
    .describe('split to read; has an effect only if file names contain the names of splits'),
  theorem_idx: z
    .int()
    .min(0)
    .nullable()
    .default(null)
    .describe('index (from 0) of the only theorem to use; null: the seed of the episode selects the theorem'),
  server_url: z.string().default('http://127.0.0.1:8000').describe('address of the Kimina server'),
  api_key: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'API key of the Kimina server; null: the key is read from the environment variable LEAN_SERVER_API_KEY. For runs, use the variable, because the run folder stores the configuration',
    ),
  repl_command: z
    .array(z.string())
    .min(1)
    .nullable()
    .default(null)
    .describe('command of a Lean REPL to use instead of the server, such as [lake, exe, repl]'),
  repl_folder: z
    .string()
    .nullable()
    .default(null)
    .describe('folder in which repl_command is started; null: the REPL starts in the current folder'),
  request_timeout: z.number().positive().default(30).describe('timeout in seconds of one request to Lean'),
  http_timeout: z
    .number()
    .positive()
    .default(60)
    .describe(
      'timeout in seconds of an HTTP request to the server or, if repl_command is set, of starting the REPL and importing modules',
    ),
  max_retries: z.int().min(1).default(3).describe('maximum number of attempts per request to the server'),
  max_steps: z.int().min(1).default(100),
  step_penalty: z.number().default(-0.1),
  valid_step_reward: z.number().default(1),
  invalid_step_reward: z.number().default(-1),
  success_reward: z.number().default(10),
  timeout_penalty: z.number().default(-1),
  max_steps_penalty: z.number().default(-2),
  default_imports: z
    .string()
    .default('import Mathlib\nimport Aesop\nset_option maxHeartbeats 0\nopen BigOperators Real Nat Topology Rat')
    .describe('Lean code that is placed before a theorem that has no imports'),
  message_truncate_limit: z
    .int()
    .min(0)
    .default(0)
    .describe('maximum number of characters shown per message of Lean; 0: all are shown'),
});
type Config = z.infer<typeof config>;

const shipped = fileURLToPath(new URL('../../media/data/lean.jsonl', import.meta.url));
const remedy =
  'set env_config.dataset_name_or_path to a file or folder with the column "formal_statement", to CoderBak/minif2f, or to null for the shipped theorems';
const read = new Map<string, Promise<Theorem[]>>();

/** Returns the theorems of a configuration; the data set is read once. Rows without a formal statement are skipped. */
function theoremsOf({ dataset_name_or_path, dataset_split, default_imports }: Config): Promise<Theorem[]> {
  const key = JSON.stringify([dataset_name_or_path, dataset_split, default_imports]);
  const theorems = read.get(key) ?? readTheorems(dataset_name_or_path ?? shipped, dataset_split, default_imports);
  read.set(key, theorems);
  theorems.catch(() => read.delete(key));
  return theorems;
}

async function readTheorems(path: string, split: string, defaultImports: string): Promise<Theorem[]> {
  const rows = await openDataSet(path, { split, remedy });
  const theorems: Theorem[] = [];
  for (let i = 0; i < rows.length; i++) {
    const { formal_statement, natural_language_statement, proof } = await rows.row(i);
    if (typeof formal_statement !== 'string' || formal_statement.trim() === '') continue;
    const parts = partsOf(formal_statement);
    theorems.push({
      ...parts,
      imports: parts.imports === '' ? defaultImports : parts.imports,
      informal: typeof natural_language_statement === 'string' ? natural_language_statement.trim() : '',
      ...(Array.isArray(proof) && { proof: proof.map(String) }),
    });
  }
  if (theorems.length === 0)
    throw new MissingDependency(`cannot use ${path}, because its column "formal_statement" contains no text`, remedy);
  return theorems;
}

const checkers = new Map<string, Checker>();

/**
 * Returns the checker of a configuration. Configurations with the same REPL command, folder and timeouts share one REPL
 * process.
 */
function checkerOf(config: Config): Checker {
  const { repl_command, repl_folder, request_timeout, http_timeout } = config;
  if (repl_command === null)
    return kiminaChecker({
      url: config.server_url,
      apiKey: apiKeyOf(config),
      timeout: Math.trunc(request_timeout),
      httpTimeout: http_timeout,
      attempts: config.max_retries,
    });
  const key = JSON.stringify([repl_command, repl_folder, request_timeout, http_timeout]);
  const options = { command: repl_command, folder: repl_folder, timeout: request_timeout, headerTimeout: http_timeout };
  const checker = checkers.get(key) ?? replChecker(options);
  checkers.set(key, checker);
  return checker;
}

const apiKeyOf = ({ api_key }: Config) => api_key ?? process.env.LEAN_SERVER_API_KEY ?? null;

const cut = (text: string, limit: number) =>
  limit === 0 || text.length <= limit ? text : `${text.slice(0, limit - 3)}...`;

/** Returns a message of Lean in the format that the model sees: `01. [ERROR 3:2 → 3:9] text`. */
function messageLine({ severity, data, pos, endPos }: LeanMessage, index: number, limit: number): string {
  const position = [pos, endPos].flatMap(at => (at ? [`${at.line}:${at.column}`] : [])).join(' → ');
  const kind = isUnsolved({ severity, data }) ? 'UNSOLVED GOALS' : severity.toUpperCase();
  const number = String(index + 1).padStart(2, '0');
  return `${number}. [${kind}${position === '' ? '' : ` ${position}`}] ${cut(data.trim(), limit)}`.trimEnd();
}

export default defineEnvironment({
  name: 'lean',
  config,
  instruction:
    'You prove theorems in Lean. Give the tactics that complete the proof, one after the other, separated by ||, for example' +
    ' <answer>intro h || simp at h || exact h</answer>.',
  patience: ({ request_timeout, http_timeout, max_retries }) =>
    (request_timeout + (http_timeout + 10) * max_retries) * 1000,

  async dependencies(config) {
    await theoremsOf(config);
    if (config.repl_command !== null) {
      const verdict = verdictOf(
        await checkerOf(config).check({ header: '', body: 'example : True := by\n  trivial\n' }),
      );
      if (verdict.success) return;
      const why = cut(verdict.messages.at(-1)?.data ?? 'the REPL rejects a trivial proof', 160);
      throw new MissingDependency(
        `cannot use the Lean REPL that "${config.repl_command.join(' ')}" starts (${why})`,
        'correct env_config.repl_command and env_config.repl_folder, or set env_config.server_url to the address of a Kimina server',
      );
    }
    if (!(await isAnswering(config.server_url, apiKeyOf(config))))
      throw new MissingDependency(
        `cannot reach a Lean server at ${config.server_url}`,
        'start the Kimina Lean server there, or set env_config.repl_command to the command of a Lean REPL',
      );
  },

  create(config) {
    const checker = checkerOf(config);
    const limit = config.message_truncate_limit;
    let theorem: Theorem;
    let tactics: string[] = [];
    let log: { tactic: string; accepted: boolean }[] = [];
    let last: Verdict | undefined;

    const shown = () => {
      const script = scriptOf(theorem, tactics);
      const informal = wrapped(theorem.informal);
      const first = Math.max(0, log.length - 5);
      const entries = log.slice(first).map(({ tactic, accepted }, i) => {
        return `  ${String(first + i + 1).padStart(2, '0')}. ${tactic} [${accepted ? '✓ accepted' : '✗ rejected'}]`;
      });
      const messages = last?.messages.map((message, i) => messageLine(message, i, limit)) ?? [];
      return [
        `Steps taken: ${log.length}/${config.max_steps} | accepted tactics: ${tactics.length}`,
        '',
        'Informal statement:',
        ...(informal.length > 0 ? informal : ['(not provided)']).map(line => `  ${line}`),
        '',
        'Proof transcript:',
        ...numberedLines(script).map(line => `  ${line}`),
        ...(log.length > 0 ? ['', 'Proof log (latest 5 steps):'] : []),
        ...(first > 0 ? [`  ... (${first} earlier steps omitted)`] : []),
        ...entries,
        ...(last ? ['', 'Last Lean feedback:', `  accepted: ${last.accepted ? 'True' : 'False'}`, '  messages:'] : []),
        ...(last ? (messages.length > 0 ? messages : ['(no Lean messages)']) : []),
      ].join('\n');
    };

    return {
      async reset({ seed }) {
        const theorems = await theoremsOf(config);
        const { theorem_idx: fixed } = config;
        theorem = fixed === null ? new PythonRandom(seed).choice(theorems) : theorems[fixed % theorems.length];
        tactics = [];
        log = [];
        last = undefined;
        return { observation: shown() };
      },

      async step(action): Promise<StepResult> {
        const proven = last?.success === true;
        if (proven || log.length >= config.max_steps) {
          const info = { action_is_valid: false, action_is_effective: false, success: proven };
          return { observation: shown(), reward: 0, terminated: proven, truncated: !proven, info };
        }
        const tactic = String(action);
        const isEmpty = tactic.trim() === '';
        const nothing: LeanMessage = { severity: 'error', data: 'Empty tactic is not allowed.' };
        last = isEmpty
          ? { accepted: false, success: false, timedOut: false, messages: [nothing] }
          : verdictOf(await checker.check(scriptOf(theorem, [...tactics, tactic])));
        const { accepted, success, timedOut, messages } = last;
        if (accepted) tactics.push(tactic);
        log.push({ tactic, accepted });
        const truncated = !success && log.length >= config.max_steps;
        const reward =
          config.step_penalty +
          (accepted ? config.valid_step_reward : config.invalid_step_reward) +
          (success ? config.success_reward : 0) +
          (timedOut ? config.timeout_penalty : 0) +
          (truncated ? config.max_steps_penalty : 0);
        return {
          observation: shown(),
          reward,
          terminated: success,
          truncated,
          info: {
            action_is_valid: accepted,
            action_is_effective: accepted,
            success,
            accepted,
            timed_out: timedOut,
            messages: messages.map((message, i) => messageLine(message, i, limit)),
          },
        };
      },

      render: shown,
      solve() {
        if (last?.success) return [];
        const { proof } = theorem;
        const holds = proof && tactics.every((tactic, i) => tactic === proof[i]);
        return holds ? proof.slice(tactics.length) : undefined;
      },
    };
  },
});
