// A disk with injected faults: counts every call of node:fs and node:fs/promises (including file handles) on a folder,
// and makes the n-th call fail as selected. The functions are replaced in the modules themselves, so that all calls are
// covered however the product imports them.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { sep } from 'node:path';
import { partial } from '../support/partial';

/**
 * * `ENOSPC`, `EIO`, `EACCES`: the call fails without effect, as do the next `lasts − 1` calls.
 * * `EROFS`: the file system becomes read-only; only calls that would change it fail.
 * * `short`: a write stores and reports half of its data, and the next write fails with ENOSPC, as on a disk that fills
 *   up.
 * * `crash`: half of a write reaches the disk, while other calls have no effect; all later calls fail.
 */
export type FaultKind = 'ENOSPC' | 'EIO' | 'EACCES' | 'EROFS' | 'short' | 'crash';

export interface Fault {
  kind: FaultKind;
  /** Number of the first call that fails, from 1. With Infinity, calls are only counted. */
  at: number;
  /** Number of calls that fail. */
  lasts: number;
}

/** Thrown by calls after a simulated crash. */
export class Crash extends Error {}

type Callable = (...args: unknown[]) => unknown;
type Module = Record<string, Callable>;

const syncCalls = [
  ...['openSync', 'closeSync', 'readSync', 'writeSync', 'fsyncSync', 'fstatSync', 'ftruncateSync', 'truncateSync'],
  ...[
    'renameSync',
    'unlinkSync',
    'rmSync',
    'mkdirSync',
    'readdirSync',
    'readFileSync',
    'writeFileSync',
    'statSync',
    'utimesSync',
  ],
];
const asyncCalls = ['open', 'rename', 'mkdir', 'rm', 'rmdir', 'readdir', 'readFile', 'writeFile', 'stat', 'truncate'];
const handleCalls = ['write', 'sync', 'read', 'truncate', 'stat', 'close'];

const sound: Fault = { kind: 'ENOSPC', at: Infinity, lasts: 0 };

/**
 * Replaces the calls on `folder` until `restore`; all calls succeed until `fail`. A process may have one instance at a
 * time.
 */
export class FailingDisk {
  /** Names of the calls since `fail`, in order. */
  calls: string[] = [];
  private fault = sound;
  private readonly files = new Map<number, string>();
  private readonly originals: [Module, string, Callable][] = [];

  constructor(private readonly folder: string) {
    const sync = partial<Module>(fs);
    for (const name of syncCalls) this.replace(sync, name, (call, args) => this.sync(name, call, args));
    const promises = partial<Module>(fs.promises);
    for (const name of asyncCalls) this.replace(promises, name, (call, args) => this.async(name, call, args));
    syncBuiltinESMExports();
  }

  /** Starts counting calls and injecting the fault. */
  fail(fault: Fault): void {
    this.calls = [];
    this.fault = fault;
  }

  restore(): void {
    for (const [module, name, call] of this.originals) module[name] = call;
    syncBuiltinESMExports();
  }

  private replace(module: Module, name: string, as: (call: Callable, args: unknown[]) => unknown): void {
    const call = module[name];
    this.originals.push([module, name, call]);
    module[name] = (...args: unknown[]) => as((...given) => call.apply(module, given), args);
  }

  private concerns(target: unknown): boolean {
    const path = typeof target === 'number' ? this.files.get(target) : target;
    return typeof path === 'string' && (path === this.folder || path.startsWith(this.folder + sep));
  }

  private sync(name: string, call: Callable, args: unknown[]): unknown {
    if (!this.concerns(args[0])) return call(...args);
    const result = this.done(name, call, args);
    if (name === 'openSync') this.files.set(result as number, args[0] as string);
    if (name === 'closeSync') this.files.delete(args[0] as number);
    return result;
  }

  private async async(name: string, call: Callable, args: unknown[]): Promise<unknown> {
    if (!this.concerns(args[0])) return call(...args);
    const result = await this.done(name, call, args);
    if (name === 'open') this.watch(result as Module);
    return result;
  }

  private watch(handle: Module): void {
    for (const name of handleCalls) {
      const call: Callable = handle[name].bind(handle);
      handle[name] = async (...args: unknown[]) => this.done(`handle.${name}`, call, args);
    }
  }

  /**
   * Executes a call or makes it fail. Closing always succeeds, because an open handle would be a leak of the test
   * harness.
   */
  private done(name: string, call: Callable, args: unknown[]): unknown {
    const closes = name === 'closeSync' || name === 'handle.close';
    this.calls.push(name);
    const { kind, at, lasts } = this.fault;
    const since = this.calls.length - at;
    if (since < 0 || closes) return call(...args);
    if (kind === 'crash') {
      if (since === 0 && writes(name)) this.halve(name, call, args);
      throw new Crash(`the process died at call ${at}, ${this.calls[at - 1]}`);
    }
    if (kind === 'short') {
      if (since === 0 && writes(name)) return this.halve(name, call, args);
      if (since === 1 && writes(this.calls[at - 1])) throw failure('ENOSPC', name);
      return call(...args);
    }
    if (since >= lasts || (kind === 'EROFS' && !changes(name, args))) return call(...args);
    if (name.startsWith('mkdir') && fs.existsSync(args[0] as string)) return call(...args); // EEXIST takes precedence
    throw failure(isRecursive(name, args) && !passedThrough.has(kind) ? 'ENOENT' : kind, name);
  }

  private halve(name: string, call: Callable, args: unknown[]): unknown {
    // Arguments: writeSync(fd, buffer, offset, length, position), handle.write(buffer, offset, length)
    const length = name === 'writeSync' ? 3 : 2;
    const half = [...args];
    half[length] = Math.floor((args[length] as number) / 2);
    return half[length] === 0 ? call(...args) : call(...half);
  }
}

/** Whether a call changes the file system. Only reads and opening a file for reading do not. */
function changes(name: string, [, flags]: unknown[]): boolean {
  if (name === 'open' || name === 'openSync') return flags !== 'r';
  return !/stat|read/i.test(name);
}

/** Error codes that a recursive `mkdir` reports unchanged; Node.js reports all other codes as ENOENT. */
const passedThrough: ReadonlySet<string> = new Set(['EACCES', 'ENOSPC', 'EPERM', 'ENOTDIR']);
const isRecursive = (name: string, [, options]: unknown[]): boolean =>
  name.startsWith('mkdir') && (options as { recursive?: boolean } | undefined)?.recursive === true;

const writes = (name: string): boolean => name === 'writeSync' || name === 'handle.write';

function failure(code: string, call: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: made to fail, ${call}`), { code });
}
