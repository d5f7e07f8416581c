// Builds the tested program from an answer. One line precedes the answer's code, so the line numbers of the answer's
// code shift by one. If tests call a function, code is appended that reads the arguments, calls the function and prints
// the returned value after a marker. A test's expected result is never part of the program.
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { Program } from './sandbox';

export type Language = 'python' | 'javascript';

/**
 * The value that a function returned. `text` is its printed form in Python or JavaScript; `value` is set if the value
 * can be serialized as JSON.
 */
export interface Returned {
  text: string;
  value?: unknown;
}

/** Marker before the returned value in the output. The marker starts a new line. */
const mark = '\u001e';

/**
 * Returns the code and the language of an answer. The label of the answer's code fence determines the language. If the
 * label names no language, `language` is used.
 */
export function codeOf(answer: string, language: Language): { code: string; language: Language } {
  const fence = fenceIn(answer);
  if (!fence) return { code: withoutEmptyEnds(answer), language };
  const label = fence.label.toLowerCase();
  const named = /^(py|python3?)$/.test(label)
    ? 'python'
    : /^(js|javascript|node)$/.test(label)
      ? 'javascript'
      : language;
  return { code: fence.code, language: named };
}

/** Returns the first closed code fence with its label. Runs in time linear in the length of the answer. */
function fenceIn(answer: string): { label: string; code: string } | undefined {
  const open = answer.indexOf('```');
  if (open < 0) return undefined;
  const head = answer.indexOf('\n', open + 3);
  if (head < 0) return undefined;
  const end = answer.indexOf('```', head + 1);
  if (end < 0) return undefined;
  const [label] = /^[\w+-]*/.exec(answer.slice(open + 3, head))!;
  const code = answer.slice(head + 1, end);
  return { label, code: code.endsWith('\n') ? code.slice(0, -1) : code };
}

function withoutEmptyEnds(text: string): string {
  let [start, end] = [0, text.length];
  while (text[start] === '\n') start++;
  while (end > start && text[end - 1] === '\n') end--;
  return text.slice(start, end);
}

/**
 * Combines Python code with its problem's starter code. If the code is a method without a class, it is indented and
 * inserted into the starter's class. The answer replaces the starter if the answer defines the class itself, or if the
 * starter ends in a function header without a body.
 */
export function withStarter(code: string, starter: string): string {
  const given = starter.trimEnd();
  if (given.trim() === '' || /\bclass Solution\b/.test(code)) return code;
  const classHead = /^[\s\S]*?\bclass Solution\b.*:/.exec(given)?.[0];
  if (classHead !== undefined && /^(async )?def \w+\(\s*self\b/.test(code)) {
    const method = code.split('\n').map(line => (line.trim() === '' ? '' : `    ${line}`));
    return `${classHead}\n${method.join('\n')}`;
  }
  return given.endsWith(':') ? code : `${given}\n\n${code}`;
}

/**
 * Returns the source of the program. Without `functionName`, tests use standard input; with it, they call the function
 * of this name.
 */
export function sourceOf(code: string, language: Language, functionName: string | undefined): string {
  if (language === 'python')
    return `from typing import *\n${code}\n${functionName ? pythonCall(functionName, code) : ''}`;
  return `'use strict';\n${code}\n${functionName ? javascriptCall(functionName) : ''}`;
}

/**
 * Returns the standard input of a program that calls a function of the answer. It is JSON and contains the test's
 * input: the input's text, with one value per line, or the list of arguments.
 */
export function callInput(input: unknown): string {
  return JSON.stringify(
    typeof input === 'string' ? { lines: input } : { values: Array.isArray(input) ? input : [input] },
  );
}

/** Returns the value that the called function returned; undefined if the output does not contain it. */
export function returnedIn(stdout: string): Returned | undefined {
  const at = stdout.lastIndexOf(mark);
  if (at < 0) return undefined;
  try {
    const returned = JSON.parse(stdout.slice(at + 1)) as Partial<Returned> | null; // the output may be any text
    return typeof returned?.text === 'string' ? { text: returned.text, value: returned.value } : undefined;
  } catch {
    return undefined;
  }
}

function pythonCall(name: string, code: string): string {
  const target = /\bclass Solution\b/.test(code) ? `Solution().${name}` : name;
  return `
def _call_and_tell():
    import json, sys
    def value(line):
        try:
            return json.loads(line)
        except ValueError:
            return eval(line)
    given = json.load(sys.stdin)
    if "values" in given:
        values = given["values"]
    else:
        try:
            values = [value(line) for line in given["lines"].strip().splitlines() if line.strip()]
        except Exception:
            values = [given["lines"]]
    result = ${target}(*values)
    answer = {"text": str(result)}
    try:
        json.dumps(result)
        answer["value"] = result
    except Exception:
        pass
    sys.stdout.write("\\n${'\\x1e'}" + json.dumps(answer))

_call_and_tell()
`;
}

function javascriptCall(name: string): string {
  return `
;(async () => {
  const value = line => {
    try {
      return JSON.parse(line);
    } catch {
      return Function('return (' + line + ')')();
    }
  };
  const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  let values = given.values;
  if (!values) {
    try {
      values = given.lines.trim().split('\\n').filter(line => line.trim() !== '').map(value);
    } catch {
      values = [given.lines];
    }
  }
  const solution = typeof Solution === 'function' ? new Solution() : undefined;
  const result = await (solution?.${name} ? solution.${name}(...values) : ${name}(...values));
  process.stdout.write('\\n\\x1e' + JSON.stringify({ text: String(result), value: result }));
})();
`;
}

/**
 * Returns the interpreter and its options for a language. `given` takes precedence, then an interpreter in /usr, then
 * the first on the PATH. Returns undefined if no interpreter exists.
 */
export function runnerOf(language: Language, given: string | null): Omit<Program, 'source' | 'stdin'> | undefined {
  const name = language === 'python' ? 'python3' : 'node';
  const folders = ['/usr/bin', '/usr/local/bin', ...(process.env.PATH ?? '').split(delimiter)];
  const found = given ?? folders.map(folder => join(folder, name)).find(isExecutable);
  if (found === undefined || !existsSync(found)) return undefined;
  const interpreter = realpathSync(found);
  const home = interpreter.startsWith('/usr/') ? undefined : dirname(dirname(interpreter));
  if (language === 'python') return { interpreter, home, options: ['-I', '-B'], boundAddresses: true };
  return { interpreter, home, options: ['--stack-size=900'], boundAddresses: false };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
