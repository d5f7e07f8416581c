// Ends environment code that exceeds the memory limit of the process, before the trainer or the system kills the
// process. Threads report their memory between calls and while they wait. Code that allocates without a pause reports
// nothing, so if no thread has reported a large share, the thread with the longest-running call is blamed: filling
// memory takes long, other calls take microseconds. After a thread is ended, memory takes a moment to be returned, so
// no check runs until then. The trainer watches the memory of child processes.
import type { EnvironmentThread } from './thread';

const lookMs = 100;
/** Milliseconds after a thread is ended in which no other is blamed. */
const settleMs = 1000;
/** Share of the limit above which a thread is blamed for the memory it reported. */
const goodPart = 0.5;

export class MemoryWatch {
  private quietUntil = 0;

  /** @param limit memory limit of the process in bytes */
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
