// Monitors an environment process from outside, also between calls. Ends the process if it does not answer pings, or if
// the process and its children exceed the memory limit. If a thread uses too much memory, the environment process
// itself ends the thread. This monitor covers the other cases: memory of children, files in memory, and a blocked
// process. If a check is late, because the trainer was delayed or the machine was suspended, at most two check
// intervals are counted as elapsed. A delay of the trainer therefore does not end the environment process. The memory
// limit is workbench.max_environment_memory_gb, by default half of the machine's memory (node/machine-memory.ts).
// Within the process, environments/runtime/threads/thread-memory-watch.ts enforces this limit.
import { ControlGroup } from '../../node/control-group';
import type { ThreadMemory } from '../../protocol/environment-link';
import { gibibytes } from '../../common/numbers';
import { machineMemory } from '../../node/machine-memory';
import { ProcessTree, type TreeMemory } from '../../node/process-tree';

/** The reason for which the trainer ends a process. */
export interface Offence {
  kind: 'channel' | 'flood' | 'memory' | 'silent';
  /** What happened, worded to follow the environment's name, for example 'exceeded the memory limit of 8 GiB …'. */
  what: string;
  /** What the user can do, as an imperative. */
  remedy: string;
  /**
   * Whether the excessive memory is used by child processes rather than by the environment process itself. A call that
   * ended earlier may have started these child processes.
   */
  children?: boolean;
  /** Tag of the environment at fault, if known. */
  tag?: string;
}

export interface WatchLimits {
  /** Maximum milliseconds for which the process may send no message while a ping is unanswered. */
  silentMs: number;
  /** Maximum milliseconds for which the process may be stopped by SIGSTOP. */
  stoppedMs: number;
  /** Milliseconds after which the process is ended if it has not reduced its memory below the limit by itself. */
  overMs: number;
  /** Milliseconds between checks. */
  lookMs: number;
}

const usual: WatchLimits = { silentMs: 30_000, stoppedMs: 5_000, overMs: 2_000, lookMs: 250 };
/** Number of recent checks whose measurements of the children are kept. */
const mostSeen = 8;
/** Milliseconds between pings. */
const pingMs = 1000;

export interface Watched {
  pid: number | undefined;
  ownerTag: string;
  memoryBytes: number;
  limits: Partial<WatchLimits>;
}

export interface WatchOwner {
  /** Pings the process. Resolves with the memory of its threads, or with undefined if the process has ended. */
  ping(): Promise<ThreadMemory[] | undefined>;
  offended(offence: Offence): void;
}

/** Control groups whose processes were killed, but may not have exited yet. */
const leaving = new Set<ControlGroup>();
let clearing: NodeJS.Timeout | undefined;

function clearLeaving(): void {
  for (const group of leaving) {
    group.end();
    if (group.remove()) leaving.delete(group);
  }
  if (leaving.size === 0) clearing = void clearInterval(clearing);
}

/**
 * Maximum milliseconds for which this process delays its own exit until the killed processes in `leaving` have exited.
 */
const leavingMs = 500;
process.on('exit', () => {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let ms = 0; leaving.size > 0 && ms < leavingMs; ms += 10) {
    clearLeaving();
    if (leaving.size > 0) Atomics.wait(pause, 0, 0, 10);
  }
});

export class ProcessWatch {
  debugged = false;
  private readonly limits: WatchLimits;
  /** Bytes above which the process is ended at once; also the limit of its control group. */
  private readonly mostBytes: number;
  private readonly group: ControlGroup | undefined;
  private readonly tree: ProcessTree | undefined;
  private readonly timer: NodeJS.Timeout;
  private silent = 0;
  private stopped = 0;
  private over = 0;
  private looked = performance.now();
  private pinged = 0;
  private pinging = false;
  private looking = false;
  private threads: ThreadMemory[] = [];
  private children = new Map<string, number>();
  /**
   * Memory of children by tag at the latest checks. After the kernel has killed a child, these measurements show how
   * much memory the child used.
   */
  private readonly seen: ReadonlyMap<string, number>[] = [];

  constructor(
    private readonly watched: Watched,
    private readonly owner: WatchOwner,
  ) {
    const { pid, ownerTag, memoryBytes, limits } = watched;
    this.limits = { ...usual, ...limits };
    const { total } = machineMemory();
    this.mostBytes = Math.max(memoryBytes, Math.min(2 * memoryBytes + 2 ** 28, (memoryBytes + total) / 2));
    if (pid !== undefined) {
      this.group = ControlGroup.create(this.mostBytes);
      if (this.group && !this.group.add(pid)) {
        this.group.remove();
        this.group = undefined;
      }
      if (Number.isFinite(memoryBytes)) this.tree = new ProcessTree(pid, ownerTag, this.group);
    }
    this.timer = setInterval(() => void this.look(), this.limits.lookMs);
    this.timer.unref();
  }

  /** Must be called for each message from the process; restarts the measurement of the time since the last message. */
  signOfLife(): void {
    this.silent = 0;
  }

  /**
   * Returns the offence if the kernel killed the process because of its memory use, else undefined.
   * @param signal the signal that ended the process, or null
   */
  exitOffence(signal: NodeJS.Signals | null): Offence | undefined {
    return signal === 'SIGKILL' && this.group?.outOfMemory ? this.memoryOffence() : undefined;
  }

  /** Kills all processes in the process's control group, if the group exists. */
  endGroup(): void {
    this.group?.end();
  }

  /** Stops monitoring. */
  close(): void {
    clearInterval(this.timer);
    if (this.group && !this.group.remove()) leaving.add(this.group);
    if (leaving.size > 0) clearing ??= setInterval(clearLeaving, 100).unref();
  }

  private async look(): Promise<void> {
    if (this.looking) return;
    this.looking = true;
    const now = performance.now();
    const passed = Math.min(now - this.looked, 2 * this.limits.lookMs);
    this.looked = now;
    this.ping(now);
    try {
      const memory = await this.tree?.measure(this.over > 0);
      if (!this.debugged) this.judgeLife(passed, memory?.stopped ?? false);
      if (memory) this.judgeMemory(passed, memory);
      if (this.group?.outOfMemory) this.owner.offended({ ...this.childOffence(), children: true });
    } finally {
      this.looking = false;
    }
  }

  private ping(now: number): void {
    if (this.pinging || now < this.pinged + pingMs) return;
    [this.pinging, this.pinged] = [true, now];
    void this.owner.ping().then(threads => {
      this.pinging = false;
      if (threads) this.threads = threads;
    });
  }

  private judgeLife(passed: number, stopped: boolean): void {
    const { silentMs, stoppedMs } = this.limits;
    if (this.pinging) this.silent += passed;
    this.stopped = stopped ? this.stopped + passed : 0;
    const remedy = "do not send signals to the environment's own process, and look for native code that never returns";
    if (this.stopped >= stoppedMs)
      this.owner.offended({ kind: 'silent', what: `stopped its process for ${stoppedMs} ms (SIGSTOP)`, remedy });
    else if (this.silent >= silentMs)
      this.owner.offended({ kind: 'silent', what: `left its process unresponsive for ${silentMs} ms`, remedy });
  }

  private judgeMemory(passed: number, { bytes, processes }: TreeMemory): void {
    const { memoryBytes } = this.watched;
    this.children = new Map();
    for (const { tag, bytes: own } of processes)
      if (tag !== undefined) this.children.set(tag, (this.children.get(tag) ?? 0) + own);
    this.seen.push(this.children);
    if (this.seen.length > mostSeen) this.seen.shift();
    if (bytes <= memoryBytes) this.over = 0;
    else if (this.over === 0)
      this.over = 1; // the next check measures exactly and decides
    else {
      this.over += passed;
      // The process cannot free memory of its children, so waiting would not help.
      const byChildren = processes[0].bytes <= memoryBytes;
      if (byChildren || this.over >= this.limits.overMs || bytes > this.mostBytes)
        this.owner.offended({ ...this.memoryOffence(), children: byChildren });
    }
  }

  /**
   * Returns the offence to report if the kernel killed a child at the control group's limit. Fast allocation can reach
   * this limit between two checks.
   */
  private childOffence(): Offence {
    const held = new Map<string, number>();
    for (const look of this.seen) for (const [tag, bytes] of look) held.set(tag, Math.max(bytes, held.get(tag) ?? 0));
    return this.memoryOffence(held, 0);
  }

  /**
   * @param held bytes of memory by tag
   * @param least bytes that a tag must use to be blamed
   */
  private memoryOffence(held = this.heldNow(), least = this.watched.memoryBytes / 4): Offence {
    const { memoryBytes } = this.watched;
    const [first, second] = [...held].sort(([, a], [, b]) => b - a);
    // A tag is blamed only if it uses more than `least` and more than twice as much as any other tag.
    const clear = first && first[1] > least && first[1] > 2 * (second?.[1] ?? 0);
    return {
      kind: 'memory',
      what: `exceeded the memory limit of ${gibibytes(memoryBytes)} for environments and the processes that they start`,
      remedy: 'reduce memory use, or raise workbench.max_environment_memory_gb',
      ...(clear && { tag: first[0] }),
    };
  }

  /** Returns the bytes of memory by tag, for threads and children together. */
  private heldNow(): Map<string, number> {
    const held = new Map(this.children);
    for (const { tag, bytes } of this.threads) held.set(tag, (held.get(tag) ?? 0) + bytes);
    return held;
  }
}
