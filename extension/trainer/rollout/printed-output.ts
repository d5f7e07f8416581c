// What a process of environments prints, handed on as far as a budget goes. Where it is used up the process waits: it, or a child of it,
// may print without end, and reading all of that would keep this process busy.
import type { Readable } from 'node:stream';
import type { OutputBudget } from '../../protocol/output-budget';

/** Milliseconds in which nothing more is read. */
const breathMs = 200;

export function handOn(output: Readable | null, budget: OutputBudget, tell: (text: string) => void): void {
  output?.setEncoding('utf8').on('data', (printed: string) => {
    const text = budget.take(printed);
    if (text !== '') return tell(text);
    output.pause();
    setTimeout(() => output.resume(), breathMs).unref();
  });
}
