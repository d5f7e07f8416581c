// Preload of a trainer under test (`node --require`). Reports each relevant call on descriptor 3 and pauses the trainer
// at one file-system call, so that an external kill can occur within microseconds of the call. Changes nothing else:
// all calls are executed, and a write paused in the middle is a short write. Built by kill-session.ts, never imported.
import child_process from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import { relative, sep } from 'node:path';
import { Worker, isMainThread } from 'node:worker_threads';
import type { Hold, HeldPhase, Orders, Report } from './kill-session';
import { channelDescriptor } from '../../extension/node/frame-channel';
import { FrameReader } from '../../extension/node/frames';
import { reinterpret } from '../support/partial';

type Call = (...args: unknown[]) => unknown;
type Calls = Record<string, Call>;

/** Installs the hooks in the trainer's main thread only; the engine's thread also loads this file. */
function begin({ folder, holds }: Orders): void {
  const { writeSync } = fs;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const paths = new Map<number, string>();
  let counts: Record<HeldPhase, number> = { save: 0, log: 0, swap: 0 };
  let stage = 0;
  let died = false;

  const report = (report: Report): void => {
    try {
      writeSync(3, `${JSON.stringify(report)}\n`);
    } catch {
      // the reader has ended
    }
  };

  /**
   * Reports a call on a file of the run; returns the pause if the trainer must pause at this call, otherwise undefined.
   */
  const meet = (name: string, path: unknown): { how: Hold['how']; wait(): void } | undefined => {
    const file = typeof path === 'string' && path.startsWith(folder + sep) ? relative(folder, path) : undefined;
    if (file === undefined || /^trainer\.(sock|log)$/.test(file)) return undefined;
    const [top] = file.split(sep);
    const phase = top === 'checkpoints' ? 'save' : top === 'environments' ? 'swap' : 'log';
    report({ kind: 'call', phase, name, file });
    const hold = holds[stage];
    if (++counts[phase] !== hold?.nth || phase !== hold.phase) return undefined;
    const wait = (): void => {
      report({ kind: 'held', phase, name, file, how: hold.how });
      Atomics.wait(cell, 0, 0, hold.ms);
    };
    return { how: hold.how, wait };
  };

  const sync = reinterpret<Calls>(fs);
  const around = (
    name: string,
    pathOf: (args: unknown[]) => unknown,
    halved?: (args: unknown[]) => unknown[],
  ): void => {
    const call = sync[name];
    sync[name] = (...args) => {
      const hold = meet(name, pathOf(args));
      if (hold?.how === 'before') hold.wait();
      const result = call(...(hold?.how === 'during' && halved ? halved(args) : args));
      if (hold && hold.how !== 'before') hold.wait();
      if (name === 'openSync') paths.set(result as number, args[0] as string);
      return result;
    };
  };
  const half = ([target, bytes, offset, length, ...rest]: unknown[]): unknown[] =>
    typeof length === 'number'
      ? [target, bytes, offset, Math.ceil(length / 2), ...rest]
      : [target, bytes, offset, length, ...rest];
  const first = ([path]: unknown[]) => path;
  const ofDescriptor = ([fd]: unknown[]) => paths.get(fd as number);
  for (const name of ['openSync', 'renameSync', 'unlinkSync', 'mkdirSync', 'rmSync', 'writeFileSync'])
    around(name, first);
  for (const name of ['fsyncSync', 'ftruncateSync']) around(name, ofDescriptor);
  around('writeSync', ofDescriptor, half);

  const promised = reinterpret<Calls>(fs.promises);
  const aroundPromise = (calls: Calls, name: string, pathOf: (args: unknown[]) => unknown): void => {
    const call: Call = calls[name].bind(calls);
    calls[name] = async (...args) => {
      const path = pathOf(args);
      const hold = meet(name, path);
      if (hold?.how === 'before') hold.wait();
      const halved = hold?.how === 'during' && name === 'write';
      const work = call(...(halved ? half([undefined, ...args]).slice(1) : args));
      if (halved) await work;
      if (hold?.how === 'during') hold.wait(); // the call continues in the thread pool
      const result = await work;
      if (hold?.how === 'after') hold.wait();
      if (name === 'open') for (const part of ['write', 'sync']) aroundPromise(result as Calls, part, () => path);
      return result;
    };
  };
  for (const name of ['open', 'rename', 'mkdir', 'rm', 'truncate']) aroundPromise(promised, name, first);

  const post = Worker.prototype.postMessage as (this: Worker, ...args: unknown[]) => void;
  Worker.prototype.postMessage = function (this: Worker, ...args: unknown[]): void {
    const { m: method } = args[0] as { m?: unknown }; // the format of birpc messages (thread-calls.ts)
    if (typeof method === 'string') report({ kind: 'engine', method });
    if (method === 'state' && died) {
      // The first checkpoint after the environment process died starts the next stage, with its own pause.
      died = false;
      counts = { save: 0, log: 0, swap: 0 };
      report({ kind: 'stage', stage: ++stage });
    }
    post.apply(this, args);
  };

  const { spawn } = child_process;
  const processes = reinterpret<Calls>(child_process);
  processes.spawn = (...args) => {
    const child = reinterpret<Call>(spawn)(...args) as ChildProcess;
    const isEnvironment = (args[1] as string[]).some(argument => argument.endsWith('environment-host.cjs'));
    if (!isEnvironment || child.pid === undefined) return child;
    report({ kind: 'environment', pid: child.pid });
    child.once('exit', () => (died = true));
    const pipe = reinterpret<Calls>(child.stdio[channelDescriptor]);
    const reader = new FrameReader();
    const write: Call = pipe.write.bind(pipe);
    pipe.write = (chunk, ...rest) => {
      for (const message of reader.push(chunk as Buffer)) {
        const { method, tags } = message as { method?: unknown; tags?: unknown[] };
        if (method === 'prepare' || (method === 'use' && tags?.length !== 0)) report({ kind: 'swap', method });
      }
      return write(chunk, ...rest);
    };
    return child;
  };
}

const { RAGEN_TORTURE: orders } = process.env;
if (isMainThread && orders !== undefined) {
  delete process.env.RAGEN_TORTURE;
  begin(JSON.parse(orders) as Orders);
}
