// Renders a parsed template within bounds. A template is a program that came with a model: it may loop without end, or double a text until the
// memory is full. Python's sandbox bounds ranges; here the steps, the numbers of a range and all that is written on the way have a bound, which
// grows with the conversation.
import { Environment } from '@huggingface/jinja';
import { PythonInterpreter } from './python-interpreter';
import type { Template } from '@huggingface/jinja';

/**
 * What a template may take: for itself, and for each message or character of a conversation. Those of Llama 3 and Qwen take up to 65 steps a
 * message, and 12 characters for each.
 */
const limits = {
  steps: { own: 5000, each: 500 },
  letters: { own: 1_000_000, each: 100 },
  range: 10_000,
};

type Evaluate = PythonInterpreter['evaluate'];
type For = { body: { type: string }[] };

/** The text of a template with these variables. @throws Error where it takes more than it may, and as the library does */
export function renderWithin(
  template: Template,
  variables: Readonly<Record<string, unknown>>,
  conversation: { messages: number; letters: number },
): string {
  const environment = new Environment();
  for (const [name, value] of Object.entries({ ...globals, ...variables })) environment.set(name, value);
  const { steps, letters } = limits;
  const interpreter = new BoundedInterpreter(
    environment,
    steps.own + steps.each * conversation.messages,
    letters.own + letters.each * conversation.letters,
  );
  return (interpreter.run(template.parsed) as { value: unknown }).value as string;
}

/** The library's own, with bounds. */
const globals = {
  ...{ false: false, true: true, none: null, False: false, True: true, None: null },
  raise_exception: (message: string): never => {
    throw new Error(message);
  },
  range: (from: number, to?: number, step = 1): number[] => {
    const [first, end] = to === undefined ? [0, from] : [from, to];
    if (step === 0) throw new Error('range() step must not be zero');
    const count = Math.max(0, Math.ceil((end - first) / step));
    if (!(count <= limits.range)) throw new Error(`a range of it has more than ${limits.range} numbers`);
    return Array.from({ length: count }, (_, i) => first + i * step);
  },
};

class BoundedInterpreter extends PythonInterpreter {
  constructor(
    environment: Environment,
    private steps: number,
    private letters: number,
  ) {
    super(environment);
  }

  override evaluate(...[statement, environment]: Parameters<Evaluate>): ReturnType<Evaluate> {
    // A loop without a body would go round without a step.
    if (statement?.type === 'For') (statement as unknown as For).body[0] ??= { type: 'Comment' };
    if (--this.steps < 0) throw new Error('it takes too many steps');
    const result = super.evaluate(statement, environment);
    const { value } = result as { value: unknown };
    if (typeof value === 'string' || Array.isArray(value)) this.letters -= value.length;
    if (this.letters < 0) throw new Error('it writes too much');
    return result;
  }
}
