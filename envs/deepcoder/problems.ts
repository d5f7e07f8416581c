// Parses the rows of DeepCoder's data sets, whose formats differ. Tests are JSON text or JSON values. They form one
// list of tests, or two lists: inputs and outputs. The function name is in the metadata or next to the tests.
import type { Row } from '../api/data-set';

export interface Test {
  input: unknown;
  expected: unknown;
}

export interface Problem {
  text: string;
  starter: string;
  /** Name of the function that tests call; undefined if the tests pass their input through standard input. */
  functionName?: string;
  tests: Test[];
  /** A program that passes the tests, if the row contains one. */
  solution?: string;
}

/** @throws Error whose message names the missing part of the row */
export function problemOf(row: Row): Problem {
  const text = [row.question, row.prompt, row.problem].find(value => typeof value === 'string');
  if (text === undefined) throw new Error('no text in a column "problem", "prompt" or "question"');
  const raw = parsed(row.ground_truth ?? row.tests);
  const metadata = (parsed(row.metadata) ?? {}) as Row;
  const list = Array.isArray(raw) ? (raw as Row[]) : [];
  const lists = (Array.isArray(raw) ? {} : (raw ?? {})) as Row;
  const names = [metadata.func_name, lists.fn_name, list.find(test => test.fn_name)?.fn_name];
  const name = names.find(value => typeof value === 'string' && /^[A-Za-z_]\w*$/.test(value)) as string | undefined;
  const isCalled = list.length > 0 ? list[0].testtype === 'functional' || list[0].type === 'function_call' : true;
  const inputs: unknown[] = Array.isArray(lists.inputs) ? lists.inputs : [];
  const outputs: unknown[] = Array.isArray(lists.outputs) ? lists.outputs : [];
  const tests =
    list.length > 0
      ? list.map(({ input, output }) => ({ input, expected: output }))
      : inputs.slice(0, outputs.length).map((input, i) => ({ input, expected: outputs[i] }));
  const solutions = [row.canonical_solution, row.solution, row.solutions].flat();
  const solution = solutions.find(value => typeof value === 'string' && value !== '') as string | undefined;
  return {
    text,
    starter: typeof row.starter_code === 'string' ? row.starter_code : '',
    ...(name !== undefined && isCalled && { functionName: name }),
    tests,
    solution,
  };
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

/** Returns the standard input of a test. A string is passed unchanged; each element of a list becomes a line. */
export const inputText = (input: unknown): string =>
  Array.isArray(input) ? input.map(String).join('\n') : String(input ?? '');

/** Whether two outputs are equal, ignoring blanks at line ends and empty lines at the start and end. */
export function isOutput(stdout: string, expected: unknown): boolean {
  const plain = (text: string) =>
    text
      .split('\n')
      .map(line => line.trimEnd())
      .join('\n')
      .trim();
  return plain(stdout) === plain(inputText(expected));
}

/** Whether a returned value equals the expected value, either in Python's text format or as a JSON value. */
export function isReturned({ text, value }: { text: string; value?: unknown }, expected: unknown): boolean {
  if (text.trim() === (typeof expected === 'string' ? expected : pythonText(expected)).trim()) return true;
  if (value === undefined) return false;
  const wanted = typeof expected === 'string' ? parsed(expected) : expected;
  if (wanted === undefined) return false;
  const json = JSON.stringify(wanted);
  try {
    return JSON.stringify(value) === json;
  } catch (error) {
    if (error instanceof RangeError) return false; // nested too deeply to serialize
    throw error;
  }
}

/** Returns a JSON value in the format of Python's `str`. */
function pythonText(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  const inner = (item: unknown) => (typeof item === 'string' ? `'${item}'` : pythonText(item));
  if (Array.isArray(value)) return `[${value.map(inner).join(', ')}]`;
  if (typeof value !== 'object') return String(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `'${key}': ${inner(item)}`)
    .join(', ')}}`;
}
