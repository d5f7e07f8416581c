// Renders a parsed template within limits. A template is untrusted code from a model folder: it may loop forever, or
// extend a text until memory is exhausted. Python's sandbox limits only ranges, and @huggingface/jinja has no limits.
// This file limits the number of evaluation steps, the length of ranges and the length of all produced text. The limits
// of steps and text grow with the conversation.
import { Environment } from '@huggingface/jinja';
import { PythonInterpreter } from './python-interpreter';
import type { Template } from '@huggingface/jinja';

/**
 * Limits of a template. The limit of steps is `own` plus `each` per message of the conversation. The limit of produced
 * characters is `own` plus `each` per character of the conversation. The templates of Llama 3 and Qwen need up to 65
 * steps per message, and produce up to 12 characters per character of the conversation.
 */
const limits = {
  steps: { own: 5000, each: 500 },
  letters: { own: 1_000_000, each: 100 },
  range: 10_000,
};

type Evaluate = PythonInterpreter['evaluate'];
type For = NonNullable<Parameters<Evaluate>[0]> & { body: { type: string }[] };

/**
 * Renders the template with the given variables. @throws Error if a limit is exceeded, and the errors of the library
 */
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

/** Global names in templates, as in the library, except that the length of a `range` is limited. */
const globals = {
  false: false,
  true: true,
  none: null,
  False: false,
  True: true,
  None: null,
  raise_exception: (message: string): never => {
    throw new Error(message);
  },
  range: (from: number, to?: number, step = 1): number[] => {
    const [first, end] = to === undefined ? [0, from] : [from, to];
    if (step === 0) throw new Error('range() step must not be zero');
    const count = Math.max(0, Math.ceil((end - first) / step));
    if (!(count <= limits.range)) throw new Error(`the template uses a range of more than ${limits.range} numbers`);
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
    // Each evaluated node is counted as a step. An empty loop body gets a node, so that its iterations are counted too.
    if (statement?.type === 'For') (statement as For).body[0] ??= { type: 'Comment' };
    if (--this.steps < 0) throw new Error('the template takes too many steps');
    const result = super.evaluate(statement, environment);
    const { value } = result as { value: unknown };
    if (typeof value === 'string' || Array.isArray(value)) this.letters -= value.length;
    if (this.letters < 0) throw new Error('the template produces too much text');
    return result;
  }
}
