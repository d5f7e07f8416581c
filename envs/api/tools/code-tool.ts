// A tool that runs a program of the model, in the isolation of the environment deepcoder (deepcoder/sandbox.ts lists what
// the isolation covers). A program that fails is a result for the model. A program may read the clock, so an episode is
// repeatable only as far as its programs are.
import { z } from 'zod';
import { mishapOf, requireInterpreter, runnerFor, type Interpreter } from '../../deepcoder/interpreter';
import { runProgram } from '../../deepcoder/sandbox';
import { defineTool, ToolError, type Tool } from './tool';

export type { Interpreter } from '../../deepcoder/interpreter';

const languages = { python: 'Python', javascript: 'JavaScript' } as const;
const longestOutput = 10_000;

/** Checks that programs can run; call it in `dependencies`. @throws MissingDependency if they cannot */
export const requireCode = (interpreter: Interpreter): Promise<void> => requireInterpreter(interpreter);

/** Returns a tool with the parameters `code` and `stdin`; its result is what the program printed. */
export function codeTool(interpreter: Interpreter): Tool {
  const { language, isolation, limits } = interpreter;
  return defineTool({
    description: `Runs a ${languages[language]} program and returns what it prints.`,
    parameters: z.strictObject({ code: z.string(), stdin: z.string().default('') }),
    parallel: true,
    async run({ code, stdin }) {
      const outcome = await runProgram({ ...runnerFor(interpreter), source: code, stdin }, limits, isolation);
      const printed = outcome.stdout.slice(0, longestOutput);
      if (outcome.by === 'exit' && outcome.code === 0) return printed;
      throw new ToolError(
        `the program ${mishapOf(outcome, limits)}${printed === '' ? '' : ` It printed:\n${printed}`}`,
      );
    },
  });
}
