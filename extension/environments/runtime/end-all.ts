// Ends an environment process together with all processes that it has started.
import { killTree, ownerTagVariable } from '../../node/end-processes';

/** Ends all processes started by environments, first those that left this process group, then this process. */
export function endAll(code: number): void {
  if (process.platform !== 'win32') {
    killTree(undefined, process.env[ownerTagVariable] ?? '');
    if (code === 0) killTree(process.pid, ''); // the process group, with this process if it leads the group
  }
  process.exit(code);
}
