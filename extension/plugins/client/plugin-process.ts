// One plug-in process and its children, from start to end: sends requests one at a time, and ends the process if a
// request exceeds its time limit, if the memory limit is exceeded, or after a message that is no reply. A process that
// has ended is not restarted; its owner starts another one.
import { spawn, type ChildProcess } from 'node:child_process';
import { killTree, newOwnerTag, ownerTagVariable } from '../../node/end-processes';
import { environmentMemory } from '../../node/machine-memory';
import { OutputBudget } from '../../node/output-budget';
import { gibibytes } from '../../common/numbers';
import { pipeLines } from '../../environments/client/printed-output';
import { ProcessWatch } from '../../environments/client/process-watch';
import { isPluginReply } from '../../protocol/plugin-link';
import type { PluginFault, PluginReply, PluginRequest } from '../../protocol/plugin-link';

export interface PluginProcessOptions {
  /** Path of the bundle `plugin-host.cjs`; `type-check-worker.cjs` must be in the same folder. */
  entry: string;
  /** Maximum bytes of memory of the process and its children; default half of the machine's memory. */
  memoryBytes?: number;
  /** Receives printed text. */
  onOutput(text: string): void;
}

/** Maximum characters of output that are forwarded per second. */
const printedPerSecond = 65_536;
/** Additional milliseconds for the first request, which waits for the start of the process. */
const startAllowanceMs = 20_000;

/** Plug-in processes that have not ended. When the trainer exits, it ends these processes. */
const running = new Set<PluginProcess>();
process.on('exit', () => {
  for (const each of [...running]) each.stop();
});

export class PluginProcess {
  private readonly child: ChildProcess;
  private readonly ownerTag = newOwnerTag();
  private readonly watch: ProcessWatch;
  /** Receives the reply of the current request, or the fault that ended the process. */
  private current: ((reply: PluginReply) => void) | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private ended: PluginFault | undefined;
  private answered = false;

  constructor({ entry, memoryBytes = environmentMemory(), onOutput }: PluginProcessOptions) {
    this.child = spawn(process.execPath, [entry], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      serialization: 'advanced', // structured clones, which keep typed arrays
      detached: process.platform !== 'win32', // starts a process group, so that its children can be ended too
      windowsHide: true,
      env: {
        ...process.env,
        ...(process.versions.electron && { ELECTRON_RUN_AS_NODE: '1' }),
        [ownerTagVariable]: this.ownerTag,
      },
    });
    running.add(this);
    const printed = new OutputBudget(printedPerSecond);
    for (const output of [this.child.stdout, this.child.stderr]) pipeLines(output, printed, onOutput);
    const outOfMemory: PluginFault = {
      what: `exceeded the memory limit of ${gibibytes(memoryBytes)}`,
      remedy: 'reduce memory use, or raise workbench.max_environment_memory_gb',
    };
    this.watch = new ProcessWatch(
      { pid: this.child.pid, ownerTag: this.ownerTag, memoryBytes, limits: { silentMs: Infinity } },
      {
        ping: () => new Promise(() => undefined), // the time limit of a request replaces pings
        offended: ({ kind, what }) =>
          this.end(kind === 'memory' ? outOfMemory : { what, remedy: 'do not send signals to the own process' }),
      },
    );
    this.child.on('message', message => this.receive(message));
    this.child.on('error', ({ message }) => this.end({ what: `cannot run (${message})`, remedy: 'check the machine' }));
    this.child.on('exit', (code, signal) => {
      const killed = this.watch.exitOffence(signal); // the system may notice the memory before the watch does
      const what = `ended its process (${signal ?? `exit code ${code}`})`;
      const remedy = 'throw an error instead of ending the process, and look for errors that nothing catches';
      this.end(killed ? outOfMemory : { what, remedy });
    });
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  /**
   * Sends a request after the replies to all earlier ones. Returns the reply; if the process ends first or the time
   * limit passes, the reply is a fault and the process has ended.
   */
  ask(request: PluginRequest, limitMs: number): Promise<PluginReply> {
    const reply = this.queue.then(() => this.send(request, limitMs));
    this.queue = reply;
    return reply;
  }

  /** Ends the process and its children. A request in progress gets a fault. */
  stop(): void {
    this.end({ what: 'was stopped', remedy: 'start the run again' });
  }

  private send(request: PluginRequest, limitMs: number): Promise<PluginReply> {
    if (this.ended) return Promise.resolve({ fault: this.ended });
    return new Promise(resolve => {
      const timer = setTimeout(
        () =>
          this.end({
            what: `did not return within ${limitMs} ms`,
            remedy: 'make the function return sooner, or raise workbench.plugins.timeout_ms',
          }),
        limitMs + (this.answered ? 0 : startAllowanceMs),
      );
      this.current = reply => {
        clearTimeout(timer);
        this.current = undefined;
        resolve(reply);
      };
      this.child.send(request, error => {
        if (error) this.end({ what: `cannot be reached (${error.message})`, remedy: 'start the run again' });
      });
    });
  }

  private receive(message: unknown): void {
    if (!this.current || !isPluginReply(message))
      return this.end({
        what: 'sent a message of its own to the trainer',
        remedy: 'do not call process.send in a plug-in',
      });
    this.answered = true;
    this.current(message);
  }

  private end(fault: PluginFault): void {
    if (this.ended) return;
    this.ended = fault;
    running.delete(this);
    killTree(this.child.pid, this.ownerTag);
    this.watch.endGroup();
    this.watch.close();
    this.current?.({ fault });
  }
}
