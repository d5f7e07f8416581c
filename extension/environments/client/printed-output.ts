// Forwards the output of an environment process, at a limited rate. Above this rate, reading pauses, and the
// environment process blocks when it writes more. Without the limit, endless output would use all processor time of the
// reading process. Secrets are removed, even if they span several chunks.
import type { Readable } from 'node:stream';
import type { OutputBudget } from '../../node/output-budget';
import { secrets } from '../../node/secrets';

/** Milliseconds for which reading pauses. */
const pauseMs = 200;

export function pipeLines(output: Readable | null, budget: OutputBudget, emit: (text: string) => void): void {
  const cleared = secrets.stream();
  const pass = (text: string): void => (text === '' ? undefined : emit(text));
  output?.on('end', () => pass(cleared.rest()));
  output?.setEncoding('utf8').on('data', (printed: string) => {
    const text = budget.take(printed);
    if (text !== '') return pass(cleared.take(text));
    output.pause();
    setTimeout(() => output.resume(), pauseMs).unref();
  });
}
