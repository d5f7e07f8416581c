// The interpreter that runs programs of a model: where it is found, whether it runs in isolation, and how a program that
// failed is described.
import { MissingDependency } from '../api/environment';
import { runnerOf, type Language } from './programs';
import { requireIsolation, runProgram, type Isolation, type Limits, type Outcome, type Program } from './sandbox';

export interface Interpreter {
  language: Language;
  /** Path of python3 or node; null to search under /usr, then on the PATH. */
  path: string | null;
  isolation: Isolation;
  limits: Limits;
}

const key = (language: Language): string => (language === 'python' ? 'python_path' : 'node_path');

/** Returns how a program in a language is started. @throws MissingDependency if the interpreter is missing */
export function runnerFor({
  language,
  path,
}: Pick<Interpreter, 'language' | 'path'>): Omit<Program, 'source' | 'stdin'> {
  const found = runnerOf(language, path);
  const name = language === 'python' ? 'python3' : 'node';
  if (!found)
    throw new MissingDependency(
      `cannot find ${name}`,
      `install ${name}, or set env_config.${key(language)} to its path`,
    );
  return found;
}

/** Checks that an empty program runs. @throws MissingDependency if the isolation or the interpreter does not work */
export async function requireInterpreter(interpreter: Interpreter): Promise<void> {
  const { language, isolation, limits } = interpreter;
  if (isolation === 'bubblewrap') await requireIsolation();
  const found = runnerFor(interpreter);
  const { code, stderr } = await runProgram({ ...found, source: '', stdin: '' }, limits, isolation);
  if (code !== 0)
    throw new MissingDependency(
      `cannot run ${found.interpreter} in isolation (${stderr.trim().split('\n').at(-1)})`,
      `install ${language === 'python' ? 'python3' : 'node'} under /usr, or set env_config.${key(language)} to another interpreter`,
    );
}

export const cut = (text: string, limit = 200): string => (text.length > limit ? `${text.slice(0, limit)}…` : text);

/** Says why a program failed, as the rest of a sentence about the program. */
export function mishapOf({ by, code, stderr }: Outcome, { seconds, megabytes }: Limits): string {
  if (by === 'time') return `did not end within ${seconds} seconds.`;
  if (by === 'memory') return `used more than ${megabytes} MB.`;
  if (by === 'output') return 'wrote too much.';
  const lines = stderr.trim().split('\n');
  const cause = lines.findLast(line => /^\w*(Error|Exception|Exit|Interrupt)\b/.test(line)) ?? lines.at(-1);
  return `ended with ${code === null ? 'a signal' : `exit code ${code}`}${cause ? ` (${cut(cause)})` : ''}.`;
}
