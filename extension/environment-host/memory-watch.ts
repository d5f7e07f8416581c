// Ends environment code that takes more memory than the process may hold, before the system ends the process, or another one, for it.
// What one thread holds outside its heap is known to nobody, so the process is measured, and the call that runs longest is blamed: code
// that fills memory takes long, others take microseconds. After an end memory needs a moment to come back before it says anything new.
import type { EnvironmentThread } from './thread';

const lookMs = 100;
/** Milliseconds after an end in which no other is to blame. */
const settleMs = 1000;

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
    const busy = [...this.threads()].filter(({ busySince }) => busySince !== undefined);
    const [longest] = busy.sort((a, b) => a.busySince! - b.busySince!);
    if (!longest) return;
    longest.endForMemory(this.limit);
    this.quietUntil = performance.now() + settleMs;
  }
}
