// Ends an environment process and all processes that its environments have started.
import { killTree, ownerTagVariable } from '../../node/end-processes';

/**
 * Ends first all processes with this process's owner tag in their environment variables, then the process group, and
 * finally this process.
 * @param code exit code of this process. If the code is 0, this process kills the process group itself; otherwise the
 * trainer kills the group
 */
export function endAll(code: number): void {
  if (process.platform !== 'win32') {
    killTree(undefined, process.env[ownerTagVariable] ?? '');
    // kills the process group, and thereby this process if it leads the group
    if (code === 0) killTree(process.pid, '');
  }
  process.exit(code);
}
