// How many runs of a sweep this machine takes at a time: as many as its cores allow, and no more than fit into memory
// together. Memory is reserved by each run's plan, because a run allocates most of it long after it has started.
import type { SweepPlan } from './sweep-plan';

/** Most runs at a time. */
export const mostJobs = 64;

/** Returns the number of runs whose threads fill the cores, at least 1. A run with `workbench.threads=0` fills them alone. */
export function jobsForCores({ members }: Pick<SweepPlan, 'members'>, cores: number): number {
  const widest = members.reduce((most, { loaded }) => Math.max(most, loaded.config.workbench.threads || cores), 1);
  return Math.min(mostJobs, Math.max(1, Math.floor(cores / widest)));
}

/** Admits runs in the order of their requests while their plans fit into the budget together. */
export class MemoryGate {
  private reserved = 0;
  private active = 0;
  private readonly waiting: { bytes: number; admit: () => void }[] = [];

  /** `budget` is the memory in bytes that the runs may use together. */
  constructor(private readonly budget: number) {}

  /**
   * Waits until a run with a plan of `bytes` fits next to the admitted runs. A run that exceeds the budget by itself is
   * admitted when no other runs. Returns a function that frees the reservation.
   */
  async admit(bytes: number): Promise<() => void> {
    await new Promise<void>(resolve => {
      this.waiting.push({ bytes, admit: resolve });
      this.serve();
    });
    return () => {
      this.reserved -= bytes;
      this.active--;
      this.serve();
    };
  }

  private serve(): void {
    for (let next = this.waiting.at(0); next; next = this.waiting.at(0)) {
      if (this.active > 0 && this.reserved + next.bytes > this.budget) return;
      this.waiting.shift();
      this.reserved += next.bytes;
      this.active++;
      next.admit();
    }
  }
}
