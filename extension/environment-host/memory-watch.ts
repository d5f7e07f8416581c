// Ends environment code that takes more memory than the process may hold, before the trainer, or the system, ends the process for it. Threads
// count what they hold between calls and while they wait; code that fills memory without a pause does not come to it, so that where no thread
// is known to hold a good part, the call that runs longest is blamed: code that fills memory takes long, others take microseconds. After an end
// memory needs a moment to come back before it says anything new. What children hold the trainer sees.
import type { EnvironmentThread } from './thread';

const lookMs = 100;
/** Milliseconds after an end in which no other is to blame. */
const settleMs = 1000;
/** Share of the limit at which a thread is to blame by what it has counted. */
const goodPart = 0.5;

export class MemoryWatch {
  private quietUntil = 0;

  /** @param limit bytes that the process may hold */
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
