// The end of a process that runs environments, with everything that they have started.
import { endStarted, markVariable } from '../protocol/end-processes';

/** Ends this process and all that environments have started: those that left its group first. */
export function endAll(code: number): void {
  if (process.platform !== 'win32') {
    endStarted(undefined, process.env[markVariable] ?? '');
    if (code === 0) endStarted(process.pid, ''); // the group: this process too, where it leads one
  }
  process.exit(code);
}
