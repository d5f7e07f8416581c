// Demonstrated responses for Countdown with two or three numbers. A thought tries expressions in random order and
// computes each value. A looking thought goes on until an expression equals the target; a guess answers after its first
// try. Expressions have sums and differences only; the numbers that are added come first, so no partial result is
// negative.
import type { Demonstration } from '../demonstrated-response';
import type { ResponseRequest } from './response';

/** Maximum number of expressions that a thought tries. */
const mostTries = 4;

export function countdownResponse({ state, looks, stream }: ResponseRequest): Demonstration | null {
  const [, target, list] = /Target: (\d+), nums: \[([\d, ]+)\]/.exec(state) ?? [];
  if (list === undefined) return null;
  const open = expressions(list.split(', ').map(Number));
  const tries: string[] = [];
  let text = '';
  do {
    const [expression] = open.splice(stream.integer(open.length), 1);
    const { value, steps } = computed(expression);
    const isRight = value === Number(target);
    text = expressionText(expression);
    tries.push(`${steps} ${isRight ? 'yes' : 'no'}.`);
    if (isRight) break;
  } while (looks && open.length > 0 && tries.length < mostTries);
  return { thought: tries.join(' '), actions: [text] };
}

/** Numbers with their signs, positive ones first. */
type Expression = readonly number[];

/** Returns all sums and differences of the numbers with a value of at least 0, with at least one positive number. */
export function expressions(numbers: readonly number[]): Expression[] {
  const all = Array.from({ length: 2 ** numbers.length - 1 }, (_, signs) => {
    const signed = numbers.map((number, i) => ((signs >> i) & 1 ? -number : number));
    return [...signed.filter(number => number > 0), ...signed.filter(number => number < 0)];
  });
  return all.filter(expression => expression.reduce((sum, number) => sum + number, 0) >= 0);
}

const signText = (number: number): string => (number < 0 ? ` - ${-number}` : ` + ${number}`);

const expressionText = (expression: Expression): string =>
  expression.map((number, i) => (i === 0 ? `${number}` : signText(number))).join('');

/** Returns the value, and the computation from left to right, such as `4 + 9 - 2 = 13 - 2 = 11`. */
function computed(expression: Expression): { value: number; steps: string } {
  const forms = [expressionText(expression)];
  let rest = [...expression];
  while (rest.length > 1) {
    rest = [rest[0] + rest[1], ...rest.slice(2)];
    forms.push(expressionText(rest));
  }
  return { value: rest[0], steps: forms.join(' = ') };
}
