// `ragen algo`: evaluates one algorithm on an array of cases. Users can compare the results with those of another
// implementation. Contract: the results are in the order of the cases, one per case. If a case is invalid, the command
// evaluates no case and fails; its error names the file, the index and the key. Some functions, such as filters, reject
// certain valid cases; the result of such a case is an object with the key `error`.
import type { Command } from 'commander';
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { shown } from '../../trainer/config/config-error';
import { algoFunctions } from './algo-functions';
import { answer } from '../output/answer';
import { inputName, parseCases, readInput } from '../input/cases';

const names = Object.keys(algoFunctions).join(', ');

export function addAlgo(program: Command): void {
  program
    .command('algo')
    .description('evaluate an algorithm on given numbers')
    .argument('<name>', names)
    .requiredOption('--input <file>', 'JSON array of cases; - for standard input')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .action((name: string, flags: { input: string; json?: boolean }) =>
      answer(flags, async () => {
        const results = evaluateCases(name, await readInput(flags.input), inputName(flags.input));
        return { document: results, plainText: results.map(result => JSON.stringify(result)).join('\n') };
      }),
    );
}

/** Evaluates the cases of a JSON array and returns their results; `file` is used in errors only. Throws a UserError. */
export function evaluateCases(name: string, text: string, file: string): unknown[] {
  if (!Object.hasOwn(algoFunctions, name))
    throw new UserError(`algo: ${name} is not an algorithm: use one of ${names}`);
  const evaluate = algoFunctions[name];
  return parseCases(text, file).map((input, i) => {
    try {
      return evaluate(input);
    } catch (error) {
      const location = `${file}: [${i}]`;
      if (error instanceof z.ZodError) throw new UserError(`${location}${issueSentence(error.issues[0], input)}`);
      if (error instanceof UserError) throw new UserError(`${location}: ${error.message}`);
      throw error;
    }
  });
}

/** Formats zod's first issue as an error message, such as `.mask[0][3] is 2: use …`. */
function issueSentence(issue: z.core.$ZodIssue, input: unknown): string {
  const path = issue.path.map(part => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  const value = issue.path.reduce<unknown>(
    (at, part) => (at as Record<PropertyKey, unknown> | undefined)?.[part],
    input,
  );
  const found = value === undefined ? 'is missing' : `is ${shown(value)}`;
  return `${path} ${found}: ${remedy(issue)}`;
}

const kinds: Readonly<Record<string, string>> = { array: 'an array', object: 'an object', int: 'a whole number' };

function remedy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `give ${kinds[issue.expected] ?? `a ${issue.expected}`}`;
    case 'invalid_value':
      return `use one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return `give a number ${issue.inclusive ? 'of at least' : 'above'} ${issue.minimum}`;
    case 'invalid_union': {
      const known = [...new Set(issue.errors.flat().map(remedy))];
      return known.join(' or ');
    }
    default:
      return issue.message;
  }
}
