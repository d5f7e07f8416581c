// Ends environment code that exceeds the memory limit of the process, before the trainer or the system kills the whole
// process. Threads report their memory between calls and while they wait. If a thread has reported that it uses more
// than half of the limit, this thread is ended. Otherwise, the thread with the longest-running call is ended: a thread
// cannot report while a call allocates, and such a call usually takes longer than other calls. After a thread is ended,
// checks pause for a while, because the system gets the thread's memory back with a delay. The trainer monitors the
// memory of child processes. The limit is workbench.max_environment_memory_gb, by default the result of
// `environmentMemory` (node/machine-memory.ts). environments/client/process-watch.ts monitors the memory of complete
// processes.
import type { EnvironmentThread } from './thread';

const lookMs = 100;
/** Milliseconds for which checks pause after a thread was ended. */
const settleMs = 1000;
/** A thread is ended if it has reported that it uses more than this fraction of the limit. */
const goodPart = 0.5;

export class MemoryWatch {
  private quietUntil = 0;

  /**
   * @param limit memory limit of the process in bytes
   * @param threads returns the threads that may be ended
   */
  constructor(
    private readonly limit: number,
    private readonly threads: () => Iterable<EnvironmentThread>,
  ) {
    if (Number.isFinite(limit)) setInterval(() => this.look(), lookMs).unref();
  }

  private look(): void {
    if (performance.now() < this.quietUntil || process.memoryUsage.rss() <= this.limit) return;
    const threads = [...this.threads()];
    const [largest] = threads.sort((a, b) => b.bytes - a.bytes);
    const [longest] = threads
      .filter(({ busySince }) => busySince !== undefined)
      .sort((a, b) => a.busySince! - b.busySince!);
    const blamed = largest && largest.bytes > goodPart * this.limit ? largest : (longest ?? largest);
    if (!blamed) return;
    blamed.endForMemory(this.limit);
    this.quietUntil = performance.now() + settleMs;
  }
}
