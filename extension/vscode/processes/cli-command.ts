// Runs a command of the CLI (`dist/cli.cjs`) to its end and returns the JSON document that it prints. To start or
// resume a run, the CLI resolves the configuration, creates the run folder and starts a trainer. The trainer is a
// detached process, so the run continues when the extension host ends. Must not import `vscode`.
import { spawn } from 'node:child_process';
import { isRecord, jsonOrNothing } from '../../common/json';
import { endedBySystem, explainExit } from '../../common/process-exit';
import { UserError } from '../../common/user-error';
import { mappingProposalSchema, UnmappedFields } from '../../run-data/mapping-proposal';
import { MemoryShortage, plannedMemorySchema, type PlannedMemory } from '../../run-data/memory-shortage';
import { trainerEnvironment, type NodeRuntime } from './node-runtime';

/** Everything needed to run the CLI for a workspace folder. */
export interface CliInvocation {
  node: NodeRuntime;
  /** Path of `dist/cli.cjs`. */
  cli: string;
  /** Workspace folder. */
  cwd: string;
}

/** An error in a configuration file; line and column are 1-based. */
export interface ConfigProblem {
  message: string;
  file?: string;
  line?: number;
  column?: number;
  key?: string;
}

/**
 * The configuration was rejected. `problems` has at least one entry; the error's message is the message of the first
 * entry.
 */
export class ConfigError extends UserError {
  constructor(readonly problems: ConfigProblem[]) {
    super(problems[0].message);
  }
}

/** A run that was started. */
export interface StartedRun {
  run: string;
  /** Absolute path of the run folder. */
  folder: string;
}

/**
 * Runs `cli.cjs` with `args` plus `--detach --json` in `cwd`. Throws a ConfigError if the configuration is rejected
 * a MemoryShortage if the run does not fit into memory and `args` lack `--yes`, and, for any other failure, a UserError
 * with the CLI's message.
 */
export async function startRun(node: NodeRuntime, cli: string, args: string[], cwd: string): Promise<StartedRun> {
  const doing = `the start of the trainer (${node.path})`;
  const answer = await askCli(node, cli, [...args, '--detach'], cwd, doing);
  if (isStarted(answer)) return answer;
  throw new UserError(`${doing} returned no run: reinstall the extension`);
}

/**
 * Runs `cli.cjs` with `args` plus `--json` in `cwd` and returns its JSON document. If the CLI exits without a document,
 * the error message begins with the text `doing`, for example `the plan of the run`. Throws a ConfigError if the
 * configuration is rejected, UnmappedFields if `attach` proposes a mapping and, for any other failure, a UserError with
 * the CLI's message. When `stopped` is aborted,
 * the CLI receives SIGTERM.
 */
export async function askCli(
  node: NodeRuntime,
  cli: string,
  args: string[],
  cwd: string,
  doing: string,
  stopped?: AbortSignal,
): Promise<Record<string, unknown>> {
  stopped?.throwIfAborted();
  const { code, signal, stdout, stderr } = await runToEnd(node, [cli, ...args, '--json'], cwd, stopped);
  const answer = documentIn(stdout) ?? documentIn(stderr);
  const memory = memoryIn(answer);
  if (memory) throw new MemoryShortage(memory);
  const unmapped = unmappedIn(answer);
  if (unmapped) throw unmapped;
  const problems = problemsIn(answer);
  if (problems.length > 0) throw new ConfigError(problems);
  if (code === 0 && answer) return answer;
  // After a crash, the last line of the output may come from native code instead of being an error message, so the line
  // is not shown.
  const sentence = endedBySystem(code, signal) ? undefined : (lastLine(stderr) ?? lastLine(stdout));
  throw new UserError(sentence ?? `${doing} ${explainExit(code, signal)}`);
}

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

function runToEnd(node: NodeRuntime, args: string[], cwd: string, stopped?: AbortSignal): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const env = trainerEnvironment(process.env, node);
    // The process is detached, so that the run is also started if the window is closed while the configuration is
    // resolved.
    const child = spawn(node.path, args, {
      cwd,
      env,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    stopped?.addEventListener('abort', () => child.kill('SIGTERM'), { once: true });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', error => reject(new UserError(`${node.path} does not start: ${error.message}`)));
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/**
 * Returns the JSON document in a program's output. If the complete output is JSON, it is the document; otherwise the
 * last line that is JSON is the document. Returns undefined if no line is JSON.
 */
function documentIn(text: string): Record<string, unknown> | undefined {
  const complete = jsonOrNothing(text);
  if (isRecord(complete)) return complete;
  return text.split('\n').reverse().map(jsonOrNothing).find(isRecord);
}

/** Returns the planned memory if the CLI refused to start a run because of it. */
function memoryIn(answer: unknown): PlannedMemory | undefined {
  const error = isRecord(answer) ? answer['error'] : undefined;
  return isRecord(error) ? plannedMemorySchema.safeParse(error['memory']).data : undefined;
}

/** Returns the error of `attach` with its proposed mapping, if there is one. */
function unmappedIn(answer: unknown): UnmappedFields | undefined {
  const error = isRecord(answer) ? answer['error'] : undefined;
  if (!isRecord(error)) return undefined;
  const { data } = mappingProposalSchema.safeParse(error['proposal']);
  return data && new UnmappedFields(String(error['message']), data);
}

function problemsIn(answer: unknown): ConfigProblem[] {
  if (!isRecord(answer) || !isRecord(answer['error'])) return [];
  const error = answer['error'];
  const listed: unknown[] = Array.isArray(error['problems']) ? error['problems'] : [];
  const problems = listed.filter(isProblem);
  return problems.length > 0 ? problems : isProblem(error) ? [error] : [];
}

const isProblem = (value: unknown): value is ConfigProblem => isRecord(value) && typeof value['message'] === 'string';
const isStarted = (value: unknown): value is StartedRun =>
  isRecord(value) && typeof value['run'] === 'string' && typeof value['folder'] === 'string';

const lastLine = (text: string): string | undefined =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .at(-1);
