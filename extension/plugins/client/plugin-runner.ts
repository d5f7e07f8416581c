// Calls the functions of plug-ins in a plug-in process. The process is started by the first call. If it ends, because a
// call never returned or because the code ended it, this call fails, and the next call starts another process in which
// the code is loaded again. A plug-in keeps no state that a run depends on, so nothing else is restored.
import { UserError } from '../../common/user-error';
import type { PluginCode, PluginDescription, PluginFault } from '../../protocol/plugin-link';
import { PluginProcess, type PluginProcessOptions } from './plugin-process';

/** An error of a plug-in's code, in one sentence. */
export class PluginError extends UserError {
  /**
   * @param named path of the plug-in's file, as the user wrote it
   * @param call the function, such as `estimate`; undefined while the code is loaded
   */
  constructor(
    named: string,
    call: string | undefined,
    readonly fault: PluginFault,
  ) {
    const { at, what, remedy } = fault;
    super(`plug-in ${named}${at === undefined ? '' : ` (${at})`} ${what}${call ? ` in ${call}()` : ''}: ${remedy}`);
  }
}

export class PluginRunner {
  private process: PluginProcess | undefined;
  /** Versions of the code that the process has loaded. */
  private loaded = new Set<string>();

  /** @param timeoutMs time limit of a call in milliseconds */
  constructor(
    private readonly options: PluginProcessOptions,
    private readonly timeoutMs: number,
  ) {}

  /** Loads code and returns what its definition declares. @throws PluginError */
  async load(named: string, code: PluginCode): Promise<PluginDescription> {
    const reply = await this.running().ask({ method: 'load', code }, this.timeoutMs);
    if ('loaded' in reply) {
      this.loaded.add(code.version);
      return reply.loaded;
    }
    throw new PluginError(named, undefined, faultIn(reply));
  }

  /**
   * Calls a function and returns its value, which the caller must check.
   * @param args data that can be copied; typed arrays keep their bits
   * @throws PluginError if the function throws, exceeds the time limit or ends its process
   */
  async call(named: string, code: PluginCode, name: string, ...args: readonly unknown[]): Promise<unknown> {
    this.running();
    if (!this.loaded.has(code.version)) await this.load(named, code);
    const request = { method: 'call', version: code.version, function: name, args } as const;
    const reply = await this.running().ask(request, this.timeoutMs);
    if ('value' in reply) return reply.value;
    throw new PluginError(named, name, faultIn(reply));
  }

  stop(): void {
    this.process?.stop();
  }

  private running(): PluginProcess {
    if (this.process?.alive) return this.process;
    this.loaded = new Set();
    return (this.process = new PluginProcess(this.options));
  }
}

const faultIn = (reply: object): PluginFault =>
  'fault' in reply
    ? (reply.fault as PluginFault)
    : { what: 'sent an unexpected reply', remedy: 'do not call process.send in a plug-in' };
