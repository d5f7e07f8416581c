// What a process of environments prints, handed on as far as a budget goes. Where it is used up the process waits: it, or a child of it,
// may print without end, and reading all of that would keep this process busy. Secrets are cleared, also where a piece ends within one.
import type { Readable } from 'node:stream';
import type { OutputBudget } from '../../protocol/output-budget';
import { secrets } from '../secrets';

/** Milliseconds in which nothing more is read. */
const breathMs = 200;

export function handOn(output: Readable | null, budget: OutputBudget, tell: (text: string) => void): void {
  const cleared = secrets.stream();
  const pass = (text: string): void => (text === '' ? undefined : tell(text));
  output?.on('end', () => pass(cleared.rest()));
  output?.setEncoding('utf8').on('data', (printed: string) => {
    const text = budget.take(printed);
    if (text !== '') return pass(cleared.take(text));
    output.pause();
    setTimeout(() => output.resume(), breathMs).unref();
  });
}
